"""DescribeProducers (61): the producers of a partition, and the start of open transactions (KIP-664)."""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, nullable_string, string


@entity
class TopicRequest:
    name: str = field(string)
    partition_indexes: tuple[int, ...] = field(array(int32))


@message(api_key=ApiKey.DESCRIBE_PRODUCERS, versions=range(0, 1), flexible=0)
class DescribeProducersRequest:
    topics: tuple[TopicRequest, ...] = field(array(TopicRequest))


@entity
class ProducerState:
    producer_id: int = field(int64)
    producer_epoch: int = field(int32)
    last_sequence: int = field(int32, default=-1)
    last_timestamp: int = field(int64, default=-1)
    coordinator_epoch: int = field(int32)
    current_txn_start_offset: int = field(int64, default=-1)


@entity
class PartitionResponse:
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, default=None)
    active_producers: tuple[ProducerState, ...] = field(array(ProducerState))


@entity
class TopicResponse:
    name: str = field(string)
    partitions: tuple[PartitionResponse, ...] = field(array(PartitionResponse))


@message(api_key=ApiKey.DESCRIBE_PRODUCERS, versions=range(0, 1), flexible=0)
class DescribeProducersResponse:
    throttle_time_ms: int = field(int32)
    topics: tuple[TopicResponse, ...] = field(array(TopicResponse))
