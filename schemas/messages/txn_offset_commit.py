"""TxnOffsetCommit (28): commit offsets of a group within a transaction (KIP-98).

v2 committed_leader_epoch (KIP-320); v3 flexible, generation_id_or_member_epoch, member_id and
group_instance_id (KIP-447); v4 TRANSACTION_ABORTABLE, v5 adds the group to the transaction by itself
(KIP-890); v6 topic ids in place of names, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319).
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, nullable_string, string, uuid


@entity
class TxnOffsetCommitRequestPartition:
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, since=2, default=-1)
    committed_metadata: str | None = field(nullable_string)


@entity
class TxnOffsetCommitRequestTopic:
    name: str = field(string, until=5)
    topic_id: UUID = field(uuid, since=6)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = field(array(TxnOffsetCommitRequestPartition))


@message(api_key=ApiKey.TXN_OFFSET_COMMIT, versions=range(0, 7), flexible=3)
class TxnOffsetCommitRequest:
    transactional_id: str = field(string)
    group_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    generation_id_or_member_epoch: int = field(int32, since=3, default=-1)
    member_id: str = field(string, since=3)
    group_instance_id: str | None = field(nullable_string, since=3, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = field(array(TxnOffsetCommitRequestTopic))


@entity
class TxnOffsetCommitResponsePartition:
    partition_index: int = field(int32)
    error_code: int = field(int16)


@entity
class TxnOffsetCommitResponseTopic:
    name: str = field(string, until=5)
    topic_id: UUID = field(uuid, since=6)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = field(array(TxnOffsetCommitResponsePartition))


@message(api_key=ApiKey.TXN_OFFSET_COMMIT, versions=range(0, 7), flexible=3)
class TxnOffsetCommitResponse:
    throttle_time_ms: int = field(int32)
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = field(array(TxnOffsetCommitResponseTopic))
