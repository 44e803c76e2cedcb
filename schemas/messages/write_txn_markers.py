"""WriteTxnMarkers (27): end transactions in the partitions that they wrote to (KIP-98). Brokers send it, and
administrators, to abort a hanging transaction (KIP-664).

v2 transaction_version (KIP-1228). Kafka 4.0 removed v0.
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int8, int16, int32, int64, string


@entity
class WritableTxnMarkerTopic:
    name: str = field(string)
    partition_indexes: tuple[int, ...] = field(array(int32))


@entity
class WritableTxnMarker:
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    transaction_result: bool = field(boolean)
    topics: tuple[WritableTxnMarkerTopic, ...] = field(array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(int32)
    transaction_version: int = field(int8, since=2)


@message(api_key=ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3), flexible=1)
class WriteTxnMarkersRequest:
    markers: tuple[WritableTxnMarker, ...] = field(array(WritableTxnMarker))


@entity
class WritableTxnMarkerPartitionResult:
    partition_index: int = field(int32)
    error_code: int = field(int16)


@entity
class WritableTxnMarkerTopicResult:
    name: str = field(string)
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = field(array(WritableTxnMarkerPartitionResult))


@entity
class WritableTxnMarkerResult:
    producer_id: int = field(int64)
    topics: tuple[WritableTxnMarkerTopicResult, ...] = field(array(WritableTxnMarkerTopicResult))


@message(api_key=ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3), flexible=1)
class WriteTxnMarkersResponse:
    markers: Sequence[WritableTxnMarkerResult] = field(array(WritableTxnMarkerResult))
