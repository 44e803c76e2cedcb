"""A decision in the making: what one call to the coordinator collects before it returns.

The functions that hold the rules (`join_group`, `rebalance`, ...) take a draft as their first argument. It
gives them the time, the settings, the timers and fresh member ids, and takes their records and replies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kshim.coordination.decision import Decision, GroupRecord, Reply
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.pending_ids import PendingIds, timer_of
from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.timers import TimerKey, TimerKind, Timers
from kshim.coordination.groups.topic_changes import TopicChanges
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicId,
)


class Surroundings(NamedTuple):
    """What a coordinator is given once and every call uses."""

    settings: Settings
    timers: Timers
    topics: TopicChanges
    pending_ids: PendingIds
    new_member_id: Callable[[str], str]
    """Makes a member id that was never used before from a client id or group instance id."""
    topic_id_of: Callable[[str], TopicId]
    """The id of a topic that requests name, if offsets are to be kept with it; NO_ID if not."""


class Draft:
    """Collects the records and replies of one call."""

    __slots__ = (
        "_records",
        "_replies",
        "_reports",
        "_shard",
        "new_member_id",
        "now_ms",
        "pending_ids",
        "producer",
        "settings",
        "timers",
        "topic_id_of",
        "topics",
    )

    def __init__(self, shard: int, surroundings: Surroundings, now_ms: int) -> None:
        self._shard = shard
        self.settings, self.timers, self.topics, self.pending_ids = surroundings[:4]
        self.new_member_id, self.topic_id_of = surroundings[4:]
        self.now_ms = now_ms
        self._records: list[GroupRecord] = []
        self._replies: list[Reply] = []
        self._reports: list[object] = []
        self.producer: ProducerIdAndEpoch | None = None
        """The producer whose transaction the records are part of; None if they count at once."""

    def reply(self, token: int, response: Any) -> None:
        """Answer the request of `token`."""
        self._replies.append(Reply(token, response))

    def write_group(self, group: ClassicGroup) -> None:
        """Make the group as it stands durable."""
        self._records.append(GroupRecord(GroupMetadataKey(group=group.group_id), group.to_metadata()))

    def write(
        self, key: GroupMetadataKey | OffsetCommitKey, value: GroupMetadataValue | OffsetCommitValue | None
    ) -> None:
        """Make one record durable; None is a tombstone."""
        self._records.append(GroupRecord(key, value))

    def forget_offset(self, group_id: str, topic: str, index: int) -> None:
        """Write the tombstone of the offset that a group has committed for one partition."""
        self.write(OffsetCommitKey(group=group_id, topic=topic, partition=index), None)

    def forget_group(self, group: ClassicGroup) -> None:
        """Write the tombstone of a group's metadata; its offsets have tombstones of their own."""
        self.write(GroupMetadataKey(group=group.group_id), None)

    def report(self, report: object) -> None:
        """Report to the log a rebalance that is complete, or an expiry."""
        self._reports.append(report)

    def decision(self) -> Decision:
        """All that was collected."""
        return Decision(
            self._shard,
            tuple(self._records),
            tuple(self._replies),
            tuple(self._reports),
            (),
            self.producer if self._records else None,
        )

    # ---- timers, by what they are for

    def restart_session(self, member: Member) -> None:
        """Give `member` a whole session timeout from now."""
        self.timers.arm(member.timer, self.now_ms + member.session_timeout_ms)

    def hand_out(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Expect a new member of `group` to come back with this id; if there are too many ids, give up the
        oldest.
        """
        group.pending_join.add(member_id)
        timer = timer_of(group.group_id, member_id)
        self.timers.arm(timer, self.now_ms + timeout_ms)
        for oldest in self.pending_ids.add(timer):
            self.timers.arm(oldest, self.now_ms)

    def arm_join(self, group: ClassicGroup, delay_ms: int) -> None:
        """End the join phase of `group` after `delay_ms` at the latest."""
        self.timers.arm(TimerKey(TimerKind.JOIN, group.group_id), self.now_ms + max(delay_ms, 0))

    def arm_sync(self, group: ClassicGroup, delay_ms: int) -> None:
        """Remove the members of `group` that have not sent SyncGroup after `delay_ms`."""
        self.timers.arm(TimerKey(TimerKind.SYNC, group.group_id), self.now_ms + max(delay_ms, 0))

    def cancel_all(self, group: ClassicGroup) -> None:
        """Cancel all timers of a group that is deleted or given up."""
        self.cancel_join(group)
        self.cancel_sync(group)
        for member_id in (*group.members, *group.pending_join):
            self.timers.cancel(TimerKey(TimerKind.MEMBER, group.group_id, member_id))
            self.pending_ids.remove(group.group_id, member_id)

    def cancel_join(self, group: ClassicGroup) -> None:
        """Cancel the join timer: the join phase is over."""
        self.timers.cancel(TimerKey(TimerKind.JOIN, group.group_id))

    def cancel_sync(self, group: ClassicGroup) -> None:
        """Cancel the sync timer: no member is waited for any more."""
        self.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))
