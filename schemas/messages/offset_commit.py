"""OffsetCommit (8): store a group's position in partitions.

v2 retention_time_ms; v3 throttle_time_ms; v5 leaves retention to the broker (KIP-211);
v6 committed_leader_epoch (KIP-320); v7 group_instance_id (KIP-345); v8 flexible; v9 serves consumer groups
too, with STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND (KIP-848); v10 topic ids in place of names (KIP-848).
Kafka 4.0 removed v0-1.

generation_id_or_member_epoch is -1 and member_id is "" for a commit by a client that is no member.
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, nullable_string, string, uuid


@entity
class OffsetCommitRequestPartition:
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, since=6, default=-1)
    committed_metadata: str | None = field(nullable_string)


@entity
class OffsetCommitRequestTopic:
    name: str = field(string, until=9)
    topic_id: UUID = field(uuid, since=10)
    partitions: tuple[OffsetCommitRequestPartition, ...] = field(array(OffsetCommitRequestPartition))


@message(api_key=ApiKey.OFFSET_COMMIT, versions=range(2, 11), flexible=8)
class OffsetCommitRequest:
    group_id: str = field(string)
    generation_id_or_member_epoch: int = field(int32, default=-1)
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, since=7, default=None)
    retention_time_ms: int = field(int64, until=4, default=-1)
    topics: tuple[OffsetCommitRequestTopic, ...] = field(array(OffsetCommitRequestTopic))


@entity
class OffsetCommitResponsePartition:
    partition_index: int = field(int32)
    error_code: int = field(int16)


@entity
class OffsetCommitResponseTopic:
    name: str = field(string, until=9)
    topic_id: UUID = field(uuid, since=10)
    partitions: tuple[OffsetCommitResponsePartition, ...] = field(array(OffsetCommitResponsePartition))


@message(api_key=ApiKey.OFFSET_COMMIT, versions=range(2, 11), flexible=8)
class OffsetCommitResponse:
    throttle_time_ms: int = field(int32, since=3)
    topics: tuple[OffsetCommitResponseTopic, ...] = field(array(OffsetCommitResponseTopic))
