"""A decision in the making: one call to the coordinator collects its records and replies in a draft.

The functions that hold the rules (`join_group`, `rebalance`, ...) take a draft as their first argument. They
get the time, the settings, the timers and new member ids from it, and add their records and replies to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kshim.coordination.decision import Decision, GroupRecord, RecordKey, RecordValue, Reply
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.pending_ids import PendingIds, timer_of
from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.timers import TimerKey, TimerKind, Timers
from kshim.coordination.groups.topic_changes import TopicChanges
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    OffsetCommitKey,
    TopicId,
)


class Surroundings(NamedTuple):
    """The settings, state and functions that a coordinator holds once, and that every call uses."""

    settings: Settings
    timers: Timers
    topics: TopicChanges
    pending_ids: PendingIds
    new_member_id: Callable[[str], str]
    """Makes a new member id from a client id or group instance id."""
    topic_id_of: Callable[[str], TopicId]
    """Returns the id to store with a topic's offsets; NO_ID if they are stored by name alone."""


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

    def reply(self, token: int, response: object) -> None:
        """Answer the request of `token`."""
        self._replies.append(Reply(token, response))

    def write_group(self, group: ClassicGroup) -> None:
        """Write the record of the group as it stands."""
        self._records.append(GroupRecord(GroupMetadataKey(group=group.group_id), group.to_metadata()))

    def write(self, key: RecordKey, value: RecordValue | None) -> None:
        """Write one record; a value of None is a tombstone."""
        self._records.append(GroupRecord(key, value))

    def forget_offset(self, group_id: str, topic: str, index: int) -> None:
        """Write the tombstone of the offset that a group has committed for one partition."""
        self.write(OffsetCommitKey(group=group_id, topic=topic, partition=index), None)

    def forget_group(self, group: ClassicGroup) -> None:
        """Write the tombstone of a group's metadata. Its offsets need further tombstones."""
        self.write(GroupMetadataKey(group=group.group_id), None)

    def report(self, report: object) -> None:
        """Add a report for people: the beginning or the end of a rebalance, an expiry."""
        self._reports.append(report)

    @property
    def writes(self) -> bool:
        """True if records have been written."""
        return bool(self._records)

    def decision(self) -> Decision:
        """The decision with all that was collected."""
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
        """Wait `timeout_ms` for a new member of `group` to join with this id; if too many ids are waited for,
        give up the oldest.
        """
        group.pending_join.add(member_id)
        timer = timer_of(group.group_id, member_id)
        self.timers.arm(timer, self.now_ms + timeout_ms)
        for oldest in self.pending_ids.add(timer):
            self.timers.arm(oldest, self.now_ms)

    def arm_join(self, group: ClassicGroup, delay_ms: int) -> None:
        """Make the join phase of `group` end after `delay_ms` at the latest."""
        self.timers.arm(TimerKey(TimerKind.JOIN, group.group_id), self.now_ms + max(delay_ms, 0))

    def arm_sync(self, group: ClassicGroup, delay_ms: int) -> None:
        """After `delay_ms`, remove the members of `group` that have not sent SyncGroup by then."""
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
        """Cancel the sync timer: no SyncGroup is missing any more."""
        self.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))
