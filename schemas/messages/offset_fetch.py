"""OffsetFetch (9): a group's committed positions.

v2 null topics for "every topic", and error_code for the group (KIP-88); v3 throttle_time_ms;
v5 committed_leader_epoch (KIP-320); v6 flexible; v7 require_stable answers UNSTABLE_OFFSET_COMMIT while a
transaction is open (KIP-447); v8 many groups in one request (KIP-709); v9 member_id and member_epoch
(KIP-848); v10 topic ids in place of names (KIP-848). Kafka 4.0 removed v0.

A partition without a commit answers committed_offset -1, committed_leader_epoch -1, metadata "" and no error.
"""

from collections.abc import Sequence
from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    boolean,
    int16,
    int32,
    int64,
    nullable_array,
    nullable_string,
    string,
    uuid,
)


@entity
class OffsetFetchRequestTopic:
    name: str = field(string)
    partition_indexes: tuple[int, ...] = field(array(int32))


@entity
class OffsetFetchRequestTopics:
    name: str = field(string, until=9)
    topic_id: UUID = field(uuid, since=10)
    partition_indexes: tuple[int, ...] = field(array(int32))


@entity
class OffsetFetchRequestGroup:
    group_id: str = field(string)
    member_id: str | None = field(nullable_string, since=9, default=None)
    member_epoch: int = field(int32, since=9, default=-1)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = field(nullable_array(OffsetFetchRequestTopics))


@message(api_key=ApiKey.OFFSET_FETCH, versions=range(1, 11), flexible=6)
class OffsetFetchRequest:
    group_id: str = field(string, until=7)
    topics: tuple[OffsetFetchRequestTopic, ...] | None = field(
        array(OffsetFetchRequestTopic), until=7, nullable_since=2
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = field(array(OffsetFetchRequestGroup), since=8)
    require_stable: bool = field(boolean, since=7)


@entity
class OffsetFetchResponsePartition:
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, since=5, default=-1)
    metadata: str | None = field(nullable_string)
    error_code: int = field(int16)


@entity
class OffsetFetchResponseTopic:
    name: str = field(string)
    partitions: tuple[OffsetFetchResponsePartition, ...] = field(array(OffsetFetchResponsePartition))


@entity
class OffsetFetchResponsePartitions:
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, default=-1)
    metadata: str | None = field(nullable_string)
    error_code: int = field(int16)


@entity
class OffsetFetchResponseTopics:
    name: str = field(string, until=9)
    topic_id: UUID = field(uuid, since=10)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = field(array(OffsetFetchResponsePartitions))


@entity
class OffsetFetchResponseGroup:
    group_id: str = field(string)
    topics: Sequence[OffsetFetchResponseTopics] = field(array(OffsetFetchResponseTopics))
    error_code: int = field(int16)


@message(api_key=ApiKey.OFFSET_FETCH, versions=range(1, 11), flexible=6)
class OffsetFetchResponse:
    throttle_time_ms: int = field(int32, since=3)
    topics: tuple[OffsetFetchResponseTopic, ...] = field(array(OffsetFetchResponseTopic), until=7)
    error_code: int = field(int16, since=2, until=7)
    groups: tuple[OffsetFetchResponseGroup, ...] = field(array(OffsetFetchResponseGroup), since=8)
