"""Checks the consumer groups (KIP-848) of one partition of __consumer_offsets.

The records are replayed as the coordinator does when it loads them. At the end each group has to be whole:
each member has a subscription and a current assignment, and no epoch is ahead of the group's. A group without
a record of its epoch is in its first one.
"""

from __future__ import annotations

from collections.abc import Iterator

from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.hard_state import HardState
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupValue,
)
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitValue,
)
from schemas.message import MalformedMessage


class ConsumerGroupsCheck:
    """The groups of a partition, so far as their records are read."""

    def __init__(self) -> None:
        self._state = HardState()
        self._present: set[ConsumerGroupKey] = set()
        """Keys whose last record is no tombstone."""
        self._damaged: set[str] = set()
        """Groups that a coordinator could not load. Their later records are not checked."""

    def replay(
        self,
        key: ConsumerGroupKey | GroupMetadataKey,
        value: ConsumerGroupValue | GroupMetadataValue | OffsetCommitValue | None,
    ) -> None:
        """Apply the next record of any group. Raises MalformedMessage if it cannot follow those before it."""
        if key.group in self._damaged:
            return
        try:
            self._apply(key, value)
        except MalformedMessage:
            self._damaged.add(key.group)
            raise

    def _apply(self, key: object, value: object) -> None:
        if isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            if value is not None and key.group in self._state.consumer.groups:
                reason = f"group {key.group} is a consumer group"
                raise MalformedMessage(reason, api=type(key).__name__, version=0)
            if value is None:
                self._state.groups.pop(key.group, None)
            else:
                self._state.groups[key.group] = value
            return
        assert isinstance(key, ConsumerGroupKey)
        assert value is None or isinstance(value, ConsumerGroupValue)
        self._state.load_consumer_record(key, value)
        if value is None:
            self._present.discard(key)
        else:
            self._present.add(key)

    def faults(self) -> Iterator[str]:
        """Yield the faults of the groups at the end of the log, a line each."""
        for group_id, group in self._state.consumer.groups.items():
            if group_id not in self._damaged:
                yield from (f"consumer group {group_id}: {what}" for what in self._faults(group))

    def _faults(self, group: ConsumerGroup) -> Iterator[str]:
        group_id = group.group_id
        if group.targets and ConsumerGroupTargetAssignmentMetadataKey(group=group_id) not in self._present:
            yield "it has targets, but these have no epoch"
        if group.assignment_epoch > group.epoch:
            yield f"its target is of epoch {group.assignment_epoch}, but its own is {group.epoch}"
        for member_id in group.targets.keys() - group.members.keys():
            yield f"it has a target for {member_id}, which is no member"
        for member in group.members.values():
            yield from (f"member {member.member_id} {what}" for what in self._faults_of(group, member))

    def _faults_of(self, group: ConsumerGroup, member: Member) -> Iterator[str]:
        names = {"group": group.group_id, "member_id": member.member_id}
        if ConsumerGroupMemberMetadataKey(**names) not in self._present:
            yield "has no subscription"
        if ConsumerGroupCurrentMemberAssignmentKey(**names) not in self._present:
            yield "has no current assignment"
        if member.epoch > group.epoch:
            yield f"is in epoch {member.epoch}, but the group in {group.epoch}"
        if member.state is MemberState.UNKNOWN:
            yield "is in an unknown state"
        static = group.static_member(member.instance_id)
        if static is not None and static.member_id != member.member_id:
            yield f"has the group.instance.id {member.instance_id} of {static.member_id}"
