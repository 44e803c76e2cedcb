"""Applies the records of a consumer group to it, at run time and when a shard is loaded alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshim.coordination.groups.consumer.group import NO_EPOCH, ConsumerGroup
from kshim.coordination.groups.consumer.member import LEAVES, Member
from kshim.coordination.groups.consumer.partitions import from_target
from kshim.coordination.groups.consumer.subscriptions import Resolved
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
)


class OutOfOrder(Exception):
    """A tombstone comes before those that Kafka writes first: the log is damaged."""


def replay(group: ConsumerGroup, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> bool:
    """Apply one record; return False if it deletes the group. Raises OutOfOrder and StillOwned.

    The tombstone of a member or an expression that the group does not have changes nothing.
    """
    if isinstance(key, ConsumerGroupMetadataKey) and value is None:
        _check_empty(group)
        return False
    _REPLAYS[type(key)](group, key, value)
    return True


def _check_empty(group: ConsumerGroup) -> None:
    if group.members or group.targets or group.assignment_epoch != NO_EPOCH:
        raise OutOfOrder(f"group {group.group_id} is deleted while it has members or a target")


def _metadata(group: ConsumerGroup, _: object, value: ConsumerGroupMetadataValue) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _partition_metadata(
    group: ConsumerGroup, _: object, value: ConsumerGroupPartitionMetadataValue | None
) -> None:
    group.has_old_metadata = value is not None


def _member_metadata(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member((member or Member(key.member_id)).with_metadata(value))
    elif member is not None:
        if member.epoch != LEAVES or key.member_id in group.targets:
            raise OutOfOrder(f"member {key.member_id} is deleted before its assignment or its target")
        group.remove_member(key.member_id)


def _target_metadata(
    group: ConsumerGroup, _: object, value: ConsumerGroupTargetAssignmentMetadataValue | None
) -> None:
    group.computation = None
    if value is not None:
        group.assignment_epoch, group.assigned_ms = value.assignment_epoch, value.assignment_timestamp
    elif group.targets:
        raise OutOfOrder(f"the target of group {group.group_id} is deleted before those of its members")
    else:
        group.assignment_epoch, group.assigned_ms = NO_EPOCH, 0


def _target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.computation = None  # it began with other targets
        group.targets[key.member_id] = from_target(value.topic_partitions)


def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member((member or Member(key.member_id)).with_current(value))
    elif member is not None:
        group.put_member(member.without_current())


def _regular_expression(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    resolved = None if value is None else Resolved(frozenset(value.topics), value.version, value.timestamp)
    group.subscriptions.resolve(key.regular_expression, resolved)


_REPLAYS: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _metadata,
    ConsumerGroupPartitionMetadataKey: _partition_metadata,
    ConsumerGroupMemberMetadataKey: _member_metadata,
    ConsumerGroupTargetAssignmentMetadataKey: _target_metadata,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupCurrentMemberAssignmentKey: _current,
    ConsumerGroupRegularExpressionKey: _regular_expression,
}
