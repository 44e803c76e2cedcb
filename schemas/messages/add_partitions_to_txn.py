"""AddPartitionsToTxn (24): add partitions to a transaction (KIP-98).

v2 PRODUCER_FENCED (KIP-588); v3 flexible; v4 many transactions in one request, verify_only and a top-level
error (KIP-890), which only brokers send; v5 TRANSACTION_ABORTABLE (KIP-890).
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int16, int32, int64, string


@entity
class AddPartitionsToTxnTopic:
    name: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@entity
class AddPartitionsToTxnTransaction:
    transactional_id: str = field(string, since=4)
    producer_id: int = field(int64, since=4)
    producer_epoch: int = field(int16, since=4)
    verify_only: bool = field(boolean, since=4)
    topics: tuple[AddPartitionsToTxnTopic, ...] = field(array(AddPartitionsToTxnTopic), since=4)


@message(api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions=range(0, 6), flexible=3)
class AddPartitionsToTxnRequest:
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = field(
        array(AddPartitionsToTxnTransaction), since=4
    )
    v3_and_below_transactional_id: str = field(string, until=3)
    v3_and_below_producer_id: int = field(int64, until=3)
    v3_and_below_producer_epoch: int = field(int16, until=3)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = field(array(AddPartitionsToTxnTopic), until=3)


@entity
class AddPartitionsToTxnPartitionResult:
    partition_index: int = field(int32)
    partition_error_code: int = field(int16)


@entity
class AddPartitionsToTxnTopicResult:
    name: str = field(string)
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = field(
        array(AddPartitionsToTxnPartitionResult)
    )


@entity
class AddPartitionsToTxnResult:
    transactional_id: str = field(string, since=4)
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = field(
        array(AddPartitionsToTxnTopicResult), since=4
    )


@message(api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions=range(0, 6), flexible=3)
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=4)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = field(
        array(AddPartitionsToTxnResult), since=4
    )
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = field(
        array(AddPartitionsToTxnTopicResult), until=3
    )
