"""ListOffsets (2): the offset of a partition at a point in time.

v1 one offset and its timestamp per partition; v2 isolation_level; v4 leader epochs (KIP-320);
v5 OFFSET_NOT_AVAILABLE (KIP-207); v6 flexible; v7 the max timestamp (KIP-734); v8 the earliest local offset
(KIP-405); v9 the latest tiered offset (KIP-1005); v10 timeout_ms, for answers from remote storage (KIP-1075);
v11 the earliest offset that is yet to be uploaded (KIP-1023). Kafka 4.0 removed v0.

timestamp: -1 latest, -2 earliest, -3 the max timestamp, -4 earliest local, -5 latest tiered, -6 earliest to
upload; else the first record at or after that time in ms. The answer's timestamp and offset are -1 if there
is no such record.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, int64, string


@entity
class ListOffsetsPartition:
    partition_index: int = field(int32)
    current_leader_epoch: int = field(int32, since=4, default=-1)
    timestamp: int = field(int64)


@entity
class ListOffsetsTopic:
    name: str = field(string)
    partitions: tuple[ListOffsetsPartition, ...] = field(array(ListOffsetsPartition))


@message(api_key=ApiKey.LIST_OFFSETS, versions=range(1, 12), flexible=6)
class ListOffsetsRequest:
    replica_id: int = field(int32)
    isolation_level: int = field(int8, since=2)
    topics: tuple[ListOffsetsTopic, ...] = field(array(ListOffsetsTopic))
    timeout_ms: int = field(int32, since=10)


@entity
class ListOffsetsPartitionResponse:
    partition_index: int = field(int32)
    error_code: int = field(int16)
    timestamp: int = field(int64, default=-1)
    offset: int = field(int64, default=-1)
    leader_epoch: int = field(int32, since=4, default=-1)


@entity
class ListOffsetsTopicResponse:
    name: str = field(string)
    partitions: tuple[ListOffsetsPartitionResponse, ...] = field(array(ListOffsetsPartitionResponse))


@message(api_key=ApiKey.LIST_OFFSETS, versions=range(1, 12), flexible=6)
class ListOffsetsResponse:
    throttle_time_ms: int = field(int32, since=2)
    topics: tuple[ListOffsetsTopicResponse, ...] = field(array(ListOffsetsTopicResponse))
