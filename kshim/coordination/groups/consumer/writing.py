"""Writes the records of one group, and applies each at once.

A request is checked before its first record is written, so what is applied is never taken back: if the
journal does not take the records, the whole shard is loaded again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.consumer import recording
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.partitions import Assignment, InTarget
from kshim.coordination.groups.consumer.recording import Noted
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.consumer.subscriptions import Resolved
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.timers import TimerKey, TimerKind
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
)

OF_MEMBERS = (
    TimerKind.SESSION,
    TimerKind.REVOCATION,
    TimerKind.REJOIN,
    TimerKind.RESYNC,
    TimerKind.WAIT,
)
"""The timers that go with a member."""
OF_GROUPS = (TimerKind.REGEX, TimerKind.TARGET, TimerKind.LOOK)
"""The timers that go with a group."""


class Writing:
    """One call about one group: its draft, the group, and what is around it."""

    def __init__(
        self,
        draft: Draft,
        groups: ConsumerGroups,
        classic_groups: dict[str, ClassicGroup],
        environment: Environment,
        group: ConsumerGroup,
    ) -> None:
        self.draft = draft
        self.environment = environment
        self.group = group
        self._noted: Noted | None = None
        self.releases = False
        """True while a heartbeat is answered that has waited for news."""
        self.now_ms = draft.now_ms
        self.settings = draft.settings
        self.classic_groups = classic_groups
        """The classic groups of the shard by their ids; a group that is converted moves there."""
        self._groups = groups

    @property
    def noted(self) -> Noted:
        """What this call changes of the members. Most calls change nothing, and make none."""
        if self._noted is None:
            self._noted = Noted()
        return self._noted

    # ---- records

    def put_member(self, member: Member) -> None:
        """Write the subscription of a member."""
        key = ConsumerGroupMemberMetadataKey(group=self.group.group_id, member_id=member.member_id)
        self.noted.put.append((self.group.members.get(member.member_id), member))
        self._write(key, member.to_metadata())

    def put_current(self, member: Member) -> None:
        """Write the epoch and the partitions of a member."""
        key = ConsumerGroupCurrentMemberAssignmentKey(group=self.group.group_id, member_id=member.member_id)
        old = self.group.members.get(member.member_id)
        self._write(key, member.to_current())
        recording.moves(self.draft, self.group, old, member, self.environment.topics, releases=self.releases)
        recording.may_be_complete(self.draft, self.group)

    def put_target(self, member_id: str, target: Assignment) -> None:
        """Write what a member is to have."""
        key = ConsumerGroupTargetAssignmentMemberKey(group=self.group.group_id, member_id=member_id)
        self._write(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=InTarget(target)))

    def put_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Write the group epoch."""
        value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        self._write(ConsumerGroupMetadataKey(group=self.group.group_id), value)

    def begin_epoch(self, metadata_hash: int) -> None:
        """Write the next group epoch: a rebalance begins."""
        group = self.group
        self.put_epoch(group.epoch + 1, metadata_hash)
        assignor = group.subscriptions.preferred_assignor(self.environment.assignors)
        recording.begins(self.draft, group, self.noted, self.environment.topics, assignor)

    def put_assignment_epoch(self, epoch: int, assigned_ms: int) -> None:
        """Write the epoch of the target, which is complete."""
        key = ConsumerGroupTargetAssignmentMetadataKey(group=self.group.group_id)
        self._write(
            key,
            ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=assigned_ms
            ),
        )
        recording.is_assigned(self.draft, self.group)
        recording.may_be_complete(self.draft, self.group)

    def put_regex(self, regex: str, resolved: Resolved | None) -> None:
        """Write what a regular expression matches; None forgets it."""
        key = ConsumerGroupRegularExpressionKey(group=self.group.group_id, regular_expression=regex)
        if resolved is None:
            self._write(key, None)
            return
        topics, version, timestamp_ms = resolved
        self._write(
            key,
            ConsumerGroupRegularExpressionValue(
                topics=tuple(sorted(topics)), version=version, timestamp=timestamp_ms
            ),
        )

    def forget_old_metadata(self) -> None:
        """Write the tombstone of the record of kind 4."""
        self._write(ConsumerGroupPartitionMetadataKey(group=self.group.group_id), None)

    def remove_member(self, member_id: str) -> None:
        """Write the tombstones of a member."""
        old = self.group.members.get(member_id)
        if old is not None:
            self.noted.removed.append(old)
        self._forget_members((member_id,), ConsumerGroupCurrentMemberAssignmentKey)
        self._forget_members((member_id,), ConsumerGroupTargetAssignmentMemberKey)
        self._forget_members((member_id,), ConsumerGroupMemberMetadataKey)

    def delete_group(self) -> None:
        """Write all tombstones of the group, in the order that a replay demands."""
        group, group_id = self.group, self.group.group_id
        recording.gives_way(self.draft, group)
        member_ids = tuple(group.members)
        self._forget_members(member_ids, ConsumerGroupCurrentMemberAssignmentKey)
        self._forget_members(tuple(group.targets), ConsumerGroupTargetAssignmentMemberKey)
        self._write(ConsumerGroupTargetAssignmentMetadataKey(group=group_id), None)
        self._forget_members(member_ids, ConsumerGroupMemberMetadataKey)
        for regex in tuple(group.subscriptions.resolved):
            self.put_regex(regex, None)
        self.forget_old_metadata()
        for member_id in member_ids:
            self.cancel_all(member_id)
        self.cancel_all()
        self._write(ConsumerGroupMetadataKey(group=group_id), None)

    def forget_regexes(self, regexes: Iterable[str]) -> None:
        """Write the tombstones of those regular expressions that no member uses any more."""
        used = self.group.subscriptions.regexes
        for regex in dict.fromkeys(regexes):
            if regex and regex not in used:
                self.put_regex(regex, None)

    def _forget_members(self, member_ids: Collection[str], key: type) -> None:
        for member_id in member_ids:
            self._write(key(group=self.group.group_id, member_id=member_id), None)

    def _write(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        self.draft.write(key, value)
        self._groups.apply(self.group, key, value)

    # ---- timers

    def arm(self, kind: TimerKind, member_id: str, delay_ms: int) -> None:
        """Make a timer due in `delay_ms`."""
        key = TimerKey(kind, self.group.group_id, member_id)
        self.draft.timers.arm(key, self.now_ms + max(delay_ms, 0))

    def is_armed(self, kind: TimerKind, member_id: str = "") -> bool:
        """True if the timer is armed."""
        return self.draft.timers.deadline_ms(TimerKey(kind, self.group.group_id, member_id)) is not None

    def cancel(self, kind: TimerKind, member_id: str = "") -> None:
        """Disarm a timer."""
        self.draft.timers.cancel(TimerKey(kind, self.group.group_id, member_id))

    def cancel_all(self, member_id: str = "") -> None:
        """Disarm all timers of a member, or without one those of the group."""
        for kind in OF_MEMBERS if member_id else OF_GROUPS:
            self.cancel(kind, member_id)

    def restart_session(self, member: Member) -> None:
        """Give a member a whole session from now."""
        self.arm(TimerKind.SESSION, member.member_id, self.session_timeout_ms(member))

    def session_timeout_ms(self, member: Member) -> int:
        """A member's session timeout: its own if it is classic, else the group's."""
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self.environment.configs.session_timeout_ms(self.group.group_id)
