"""Expiry: offsets that nobody uses are deleted after `offsets.retention.minutes` (KIP-211).

The retention time of an offset starts at its commit, or, in a group that once had members, when the last of
them left. An offset that was committed with a retention time, as versions 2 to 4 can, goes by that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kshim.coordination.groups.classic_group import CONSUMER, ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.coordination.groups.offsets import NO_TIMESTAMP, Committed
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.states import State
from schemas.internal_topics.group_metadata_log import OffsetCommitValue


def expire(
    draft: Draft,
    group: ClassicGroup,
    committed: Committed,
    pending: Collection[Partition],
    partitions: Iterable[Partition],
) -> bool:
    """Write tombstones for expired offsets, and for the group if it is empty and has no offsets left; return
    True if the group is deleted. There is no grace period.

    partitions: the partitions to check. pending: the partitions for which open transactions have offsets;
    these offsets stay, and so does the group.
    """
    looked_at = looked_at_of(committed, pending, partitions)
    expired = _expired(draft, group, looked_at)
    for topic, index in expired:
        draft.forget_offset(group.group_id, topic, index)
    is_deleted = group.state is State.EMPTY and len(expired) == len(committed) and not pending
    if is_deleted:
        draft.forget_group(group)
    if expired or is_deleted:
        draft.report(ExpiryReport(group.group_id, {each: looked_at[each] for each in expired}, is_deleted))
    return is_deleted


def looked_at_of(
    committed: Committed, pending: Collection[Partition], partitions: Iterable[Partition]
) -> dict[Partition, OffsetCommitValue]:
    """The offsets of those of some partitions that have one, and for which no transaction has another."""
    return {
        partition: committed[partition]
        for partition in partitions
        if partition in committed and partition not in pending
    }


def _expired(draft: Draft, group: ClassicGroup, committed: Committed) -> list[tuple[str, int]]:
    """The partitions whose offsets have expired.

    If a group has members, offsets expire only while it is a stable group of consumers, and only for topics
    that it does not subscribe to. Subscriptions are decoded only if an offset is old enough.
    """
    since_ms = NO_TIMESTAMP
    if group.state is State.EMPTY:
        since_ms = group.state_timestamp_ms if group.protocol_type else NO_TIMESTAMP
    elif group.state is not State.STABLE or group.protocol_type != CONSUMER:
        return []
    retention_ms = draft.settings.offsets_retention_minutes * 60_000
    old = [
        partition
        for partition, value in committed.items()
        if is_old(value, since_ms, draft.now_ms, retention_ms)
    ]
    subscribed = group.subscribed_topics() if old else ()
    return [] if subscribed is None else [(topic, index) for topic, index in old if topic not in subscribed]


def is_old(value: OffsetCommitValue, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    """True if an offset's retention time is over.

    since_ms: when it started for all offsets of the group; NO_TIMESTAMP if it started at each commit.
    """
    if value.expire_timestamp != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp
    begin_ms = value.commit_timestamp if since_ms == NO_TIMESTAMP else since_ms
    return now_ms - begin_ms >= retention_ms
