"""The records of a sound consumer group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)

TOPIC_ID = UUID(int=7)
EPOCH = ConsumerGroupMetadataKey(group="g")
TARGET_EPOCH = ConsumerGroupTargetAssignmentMetadataKey(group="g")
REGEX = ConsumerGroupRegularExpressionKey(group="g", regular_expression="f.*")
Records = Mapping[Any, Any]


def member_key(member_id: str) -> ConsumerGroupMemberMetadataKey:
    return ConsumerGroupMemberMetadataKey(group="g", member_id=member_id)


def target_key(member_id: str) -> ConsumerGroupTargetAssignmentMemberKey:
    return ConsumerGroupTargetAssignmentMemberKey(group="g", member_id=member_id)


def current_key(member_id: str) -> ConsumerGroupCurrentMemberAssignmentKey:
    return ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id=member_id)


def current(epoch: int, *partitions: int, state: int = 0) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned_partitions=(TopicPartitions(topic_id=TOPIC_ID, partitions=partitions),),
    )


def member(instance_id: str | None = None) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(instance_id=instance_id, subscribed_topic_regex="f.*")


def target(*partitions: int) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=(TopicPartition(topic_id=TOPIC_ID, partitions=partitions),)
    )


SOUND: Records = {
    member_key("a"): member("till"),
    member_key("b"): member(),
    REGEX: ConsumerGroupRegularExpressionValue(topics=("foo",), version=3, timestamp=1),
    EPOCH: ConsumerGroupMetadataValue(epoch=5),
    target_key("a"): target(0, 1),
    target_key("b"): target(2),
    TARGET_EPOCH: ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=5),
    current_key("a"): current(5, 0, 1),
    current_key("b"): current(5, 2),
}
"""A group with two members, as its records describe it."""
