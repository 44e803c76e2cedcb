"""Which offsets a member of a consumer group may commit and fetch, by its epoch; and which expire."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.topics import Topics
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.expiry import is_old, looked_at_of
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.coordination.groups.offsets import NO_TIMESTAMP, Committed, too_long
from kshim.coordination.groups.pending_offsets import Partition as NamedPartition
from kshim.coordination.groups.settings import Settings
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import NO_ID, TopicId
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest

FIRST_VERSION_WITH_MEMBER_EPOCH = 9
FIRST_TXN_VERSION_WITH_STALE_EPOCH = 6
NO_EPOCH = -1

Partition = tuple[TopicId, int]


def check_commit(
    group: ConsumerGroup, member_id: str, epoch: int, version: int, partitions: Iterable[Partition]
) -> ErrorCode:
    """The error that refuses an OffsetCommit, or NONE. Only an empty group takes offsets of nobody.

    partitions: those whose offsets would be written. A member may still commit with an earlier epoch, but
    only for partitions that it has had since (KIP-1251). Its instance id does not matter, and its session
    goes on as before.
    """
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and version < FIRST_VERSION_WITH_MEMBER_EPOCH:
        return ErrorCode.UNSUPPORTED_VERSION
    return _check_epoch(member, epoch, partitions)


def check_txn_commit(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    version: int,
    partitions: Iterable[Partition],
) -> ErrorCode:
    """The error that refuses a TxnOffsetCommit, or NONE. A producer need not name the member. Up to v5 a
    stale epoch is answered ILLEGAL_GENERATION (KIP-1319).
    """
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    if epoch == NO_EPOCH and not member_id and instance_id is None:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = _check_epoch(member, epoch, partitions)
    if error is ErrorCode.STALE_MEMBER_EPOCH and version < FIRST_TXN_VERSION_WITH_STALE_EPOCH:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """The error that refuses an OffsetFetch, or NONE. A request that names no member is answered."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else _stale(member)


def written(
    settings: Settings, topics: Topics, request: OffsetCommitRequest | TxnOffsetCommitRequest
) -> Iterator[Partition]:
    """The partitions whose offsets would be written: those whose metadata is not too long."""
    for topic in request.topics:
        known = topics.named(topic.name)
        topic_id = NO_ID if known is None else known.topic_id
        for partition in topic.partitions:
            if not too_long(partition.committed_metadata, settings.offset_metadata_max_bytes):
                yield topic_id, partition.partition_index


def expire(
    it: Writing,
    committed: Committed,
    pending: Collection[NamedPartition],
    partitions: Iterable[NamedPartition],
) -> None:
    """Like `expiry.expire`: offsets expire only for topics that nobody subscribes to, some time after they
    were committed. An empty group expires with its last offset.
    """
    draft, group = it.draft, it.group
    looked_at = looked_at_of(committed, pending, partitions)
    retention_ms = draft.settings.offsets_retention_minutes * 60_000
    expired = {
        partition: value
        for partition, value in looked_at.items()
        if is_old(value, NO_TIMESTAMP, draft.now_ms, retention_ms) and partition[0] not in group.subscriptions
    }
    for topic, index in expired:
        draft.forget_offset(group.group_id, topic, index)
    is_deleted = group.state is GroupState.EMPTY and len(expired) == len(committed) and not pending
    if is_deleted:
        it.delete_group()
    if expired or is_deleted:
        draft.report(ExpiryReport(group.group_id, expired, is_deleted))


def _check_epoch(member: Member, epoch: int, partitions: Iterable[Partition]) -> ErrorCode:
    if epoch == member.epoch:
        return ErrorCode.NONE
    if epoch > member.epoch or any(epoch < _since(member, partition, epoch) for partition in partitions):
        return _stale(member)
    return ErrorCode.NONE


def _since(member: Member, partition: Partition, epoch: int) -> int:
    """The epoch in which the member got a partition; one after `epoch` if it does not have the partition."""
    topic_id, index = partition
    for held in (member.assigned, member.revoking):
        if index in held.get(topic_id, ()):
            return held[topic_id][index]
    return epoch + 1


def _stale(member: Member) -> ErrorCode:
    """The error for another epoch than the member's."""
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
