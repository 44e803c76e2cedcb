"""AdminClient and groups: list, describe, read and move offsets, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from integration.clients.confluent.python.clients import (
    ANSWER_S,
    name_of,
    offsets,
    outcome,
    outcomes,
    poll_until,
)
from integration.support.server import Server

HAS_TYPES = hasattr(confluent_kafka, "ConsumerGroupType")
GROUP_OPERATIONS = ["READ", "DELETE", "DESCRIBE"]
OF_ITS_CONFIGS = ["DESCRIBE_CONFIGS", "ALTER_CONFIGS"]


@pytest.fixture
def topic_of_two(new_topic: Callable[..., str]) -> str:
    return new_topic(2)


@pytest.fixture
def member(new_consumer: Callable[..., Consumer], group_id: str, topic_of_two: str) -> Consumer:
    """The only member of the group; offset 4 of partition 0 is committed."""
    consumer = new_consumer(group_id, client_id="me", group_instance_id="first")
    consumer.subscribe([topic_of_two])
    poll_until(lambda: consumer.assignment(), consumer, what="the group is stable")
    consumer.commit(offsets=[TopicPartition(topic_of_two, 0, 4, "noted")], asynchronous=False)
    return consumer


@pytest.fixture
def simple_group(new_consumer: Callable[..., Consumer], group_id: str, topic_of_two: str) -> str:
    """A group without members, only with commits."""
    name = f"{group_id}-simple"
    new_consumer(name).commit(offsets=[TopicPartition(topic_of_two, 1, 7)], asynchronous=False)
    return name


def committed(admin: AdminClient, group_id: str, *partitions: TopicPartition, **options: Any) -> Any:
    """The committed offsets of these partitions, or of all."""
    asked = ConsumerGroupTopicPartitions(group_id, list(partitions) or None)
    answer = outcome(admin.list_consumer_group_offsets([asked], **options)[group_id])
    assert answer.group_id == group_id
    return {(tp.topic, tp.partition): tp.offset for tp in answer.topic_partitions}


def test_list_groups(broker: Server, admin: AdminClient, member: Consumer, group_id: str) -> None:
    (everything,) = (group for group in admin.list_groups(timeout=ANSWER_S) if group.id == group_id)
    (alone,) = admin.list_groups(group_id, timeout=ANSWER_S)
    for group in (everything, alone):
        assert (group.state, group.protocol_type, group.protocol, group.error) == (
            "Stable",
            "consumer",
            "range",
            None,
        )
        assert (group.broker.id, group.broker.host, group.broker.port) == (1, broker.host, broker.port)
        (found,) = group.members
        assert (found.id, found.client_id, found.client_host) == (member.memberid(), "me", "/127.0.0.1")
        assert found.metadata
        assert found.assignment
    assert [group.state for group in admin.list_groups(f"{group_id}-no", timeout=ANSWER_S)] in ([], ["Dead"])


def test_list_consumer_groups(admin: AdminClient, member: Consumer, simple_group: str, group_id: str) -> None:
    def listed(**options: Any) -> dict[str, tuple[str, bool]]:
        answer = outcome(admin.list_consumer_groups(**options))
        assert answer.errors == []
        ours = (group for group in answer.valid if group.group_id in (group_id, simple_group))
        return {group.group_id: (group.state.name, group.is_simple_consumer_group) for group in ours}

    stable, empty = {group_id: ("STABLE", False)}, {simple_group: ("EMPTY", True)}
    assert listed() == {**stable, **empty}
    assert listed(states={ConsumerGroupState.STABLE}) == stable
    assert listed(states={ConsumerGroupState.EMPTY}) == empty
    assert listed(states={ConsumerGroupState.DEAD}) == {}
    if HAS_TYPES:
        types = confluent_kafka.ConsumerGroupType
        assert listed(types={types.CLASSIC}) == {**stable, **empty}
        assert listed(types={types.CONSUMER}) == {}
        assert listed(types={types.CLASSIC}, states={ConsumerGroupState.EMPTY}) == empty


def test_describe_consumer_groups(
    broker: Server,
    admin: AdminClient,
    member: Consumer,
    simple_group: str,
    group_id: str,
    topic_of_two: str,
) -> None:
    unknown = f"{group_id}-unknown"
    described = outcomes(admin.describe_consumer_groups([group_id, simple_group, unknown]))
    assert {name: group.state.name for name, group in described.items()} == {
        group_id: "STABLE",
        simple_group: "EMPTY",
        unknown: "DEAD",
    }
    group = described[group_id]
    assert (group.group_id, group.is_simple_consumer_group) == (group_id, False)
    assert (group.partition_assignor, group.coordinator.port) == ("range", broker.port)
    (found,) = group.members
    assert (found.member_id, found.client_id, found.host) == (member.memberid(), "me", "/127.0.0.1")
    assert found.group_instance_id == "first"
    assert {(tp.topic, tp.partition) for tp in found.assignment.topic_partitions} == {
        (topic_of_two, 0),
        (topic_of_two, 1),
    }
    if HAS_TYPES:  # as old as the response version that names them
        asked = admin.describe_consumer_groups([group_id], include_authorized_operations=True)
        allowed = [operation.name for operation in outcome(asked[group_id]).authorized_operations]
        assert allowed == [*GROUP_OPERATIONS, *OF_ITS_CONFIGS]


def test_list_consumer_group_offsets(
    admin: AdminClient, member: Consumer, group_id: str, topic_of_two: str, topic: str
) -> None:
    first, second = TopicPartition(topic_of_two, 0), TopicPartition(topic_of_two, 1)
    unknown = TopicPartition(f"{topic}-unknown", 0)
    assert committed(admin, group_id) == {(topic_of_two, 0): 4}
    assert committed(admin, group_id, first, second, unknown, require_stable=True) == {
        (topic_of_two, 0): 4,
        (topic_of_two, 1): OFFSET_INVALID,
        (unknown.topic, 0): OFFSET_INVALID,
    }
    assert committed(admin, f"{group_id}-unknown") == {}


def test_alter_consumer_group_offsets(
    admin: AdminClient, member: Consumer, simple_group: str, group_id: str, topic_of_two: str
) -> None:
    def alter(name: str, *partitions: TopicPartition) -> list[TopicPartition]:
        asked = ConsumerGroupTopicPartitions(name, list(partitions))
        return list(outcome(admin.alter_consumer_group_offsets([asked])[name]).topic_partitions)

    assert offsets(alter(simple_group, TopicPartition(topic_of_two, 0, 2))) == {0: 2}
    assert committed(admin, simple_group) == {(topic_of_two, 0): 2, (topic_of_two, 1): 7}
    fresh = f"{group_id}-fresh"
    assert offsets(alter(fresh, TopicPartition(topic_of_two, 0, 3))) == {0: 3}
    assert committed(admin, fresh) == {(topic_of_two, 0): 3}
    answers = alter(group_id, TopicPartition(topic_of_two, 0, 1), TopicPartition(topic_of_two, 99, 1))
    assert [name_of(answer.error) for answer in answers] == ["UNKNOWN_MEMBER_ID", "UNKNOWN_TOPIC_OR_PART"]
    assert committed(admin, group_id) == {(topic_of_two, 0): 4}


def test_delete_consumer_groups(
    admin: AdminClient, member: Consumer, simple_group: str, group_id: str
) -> None:
    unknown = f"{group_id}-unknown"
    assert outcomes(admin.delete_consumer_groups([group_id, simple_group, unknown])) == {
        group_id: "NON_EMPTY_GROUP",
        simple_group: None,
        unknown: "GROUP_ID_NOT_FOUND",
    }
    assert committed(admin, simple_group) == {}
    listed = outcome(admin.list_consumer_groups())
    assert {group.group_id for group in listed.valid} & {group_id, simple_group} == {group_id}
