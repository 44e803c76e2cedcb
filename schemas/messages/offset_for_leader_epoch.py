"""OffsetForLeaderEpoch (23): the end of a leader epoch's records. By it a client finds out whether the log
was truncated below its position (KIP-101, KIP-320).

v3 replica_id (KIP-320); v4 flexible. Kafka 4.0 removed v0-1.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, string


@entity
class OffsetForLeaderPartition:
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, default=-1)
    leader_epoch: int = field(int32)


@entity
class OffsetForLeaderTopic:
    topic: str = field(string)
    partitions: tuple[OffsetForLeaderPartition, ...] = field(array(OffsetForLeaderPartition))


@message(api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5), flexible=4)
class OffsetForLeaderEpochRequest:
    replica_id: int = field(int32, since=3, default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = field(array(OffsetForLeaderTopic))


@entity
class EpochEndOffset:
    error_code: int = field(int16)
    partition: int = field(int32)
    leader_epoch: int = field(int32, default=-1)
    end_offset: int = field(int64, default=-1)


@entity
class OffsetForLeaderTopicResult:
    topic: str = field(string)
    partitions: tuple[EpochEndOffset, ...] = field(array(EpochEndOffset))


@message(api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5), flexible=4)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = field(int32)
    topics: tuple[OffsetForLeaderTopicResult, ...] = field(array(OffsetForLeaderTopicResult))
