"""AlterPartitionReassignments and ListPartitionReassignments. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import fail

from kshim.answering import Broker
from kshim.api.alter_partition_reassignments import alter_partition_reassignments
from kshim.api.list_partition_reassignments import list_partition_reassignments
from kshim.cluster import leaders
from kshim.storage.interfaces import StorageError
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.api.harness import ask, create, new_broker, result


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def broker(store: MemoryStore) -> Broker:
    """Broker 1 of 3. Broker 1 is leader and only replica of both partitions of t."""
    broker = new_broker(store, brokers=3)
    create(broker, "t", 2)
    result(leaders.reassign(broker.cluster, [(("t", 0), [1]), (("t", 1), [1])]))
    return broker


def reassign(
    broker: Broker, wanted: dict[int, Sequence[int] | None], topic: str = "t", allow: bool = True
) -> dict[int, ErrorCode]:
    partitions = tuple(
        ReassignablePartition(partition_index=index, replicas=None if nodes is None else tuple(nodes))
        for index, nodes in wanted.items()
    )
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=allow,
        topics=(ReassignableTopic(name=topic, partitions=partitions),),
    )
    response: AlterPartitionReassignmentsResponse = ask(alter_partition_reassignments, broker, request, 1)
    assert (response.error_code, response.allow_replication_factor_change) == (ErrorCode.NONE, allow)
    assert response.error_message is None
    (results,) = response.responses
    assert results.name == topic
    return {each.partition_index: ErrorCode(each.error_code) for each in results.partitions}


def ongoing(broker: Broker, *indexes: int, topic: str = "t") -> dict[int, tuple[tuple[int, ...], ...]]:
    """(replicas, adding, removing) by partition; of all partitions if none is asked for."""
    asked = (ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes),) if indexes else None
    response = ask(list_partition_reassignments, broker, ListPartitionReassignmentsRequest(topics=asked), 0)
    return {
        each.partition_index: (each.replicas, each.adding_replicas, each.removing_replicas)
        for found in response.topics
        for each in found.partitions
    }


def test_replicas_that_run_are_there_at_once(broker: Broker) -> None:
    assert reassign(broker, {0: [2, 3], 1: [1, 2]}) == {0: ErrorCode.NONE, 1: ErrorCode.NONE}
    first, second = broker.cluster.topics["t"].partitions
    assert (first.replicas, first.leader, set(first.isr)) == ((2, 3), 2, {2, 3})
    assert (second.replicas, second.leader, second.isr) == ((1, 2), 1, (1, 2))
    assert ongoing(broker) == {}


@pytest.mark.parametrize("replicas", [[], [9], [1, 1]])
def test_replicas_that_cannot_be(broker: Broker, replicas: list[int]) -> None:
    assert reassign(broker, {0: replicas}) == {0: ErrorCode.INVALID_REPLICA_ASSIGNMENT}


def test_an_answer_to_nothing_has_nothing_of_the_request(broker: Broker) -> None:
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=False, topics=())
    response = ask(alter_partition_reassignments, broker, request, 1)
    assert (response.allow_replication_factor_change, response.error_message) == (True, "")


def test_a_partition_named_twice_is_answered_twice(broker: Broker) -> None:
    partitions = tuple(
        ReassignablePartition(partition_index=index, replicas=nodes)
        for index, nodes in ((0, (2,)), (0, (9,)), (1, (9,)), (0, (3,)))
    )
    request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="t", partitions=partitions),))
    (results,) = ask(alter_partition_reassignments, broker, request, 1).responses
    refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert [(each.partition_index, each.error_code) for each in results.partitions] == [
        (0, 0),
        (0, refused),
        (1, refused),
        (0, 0),
    ]
    assert broker.cluster.topics["t"].partitions[0].replicas == (3,)


def test_partitions_that_are_not_there(broker: Broker) -> None:
    assert reassign(broker, {2: [1], -1: [1]}) == dict.fromkeys((2, -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert reassign(broker, {0: [1]}, topic="nope") == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_another_number_of_replicas_may_be_forbidden(broker: Broker) -> None:
    assert reassign(broker, {0: [1, 2], 1: [2]}, allow=False) == {
        0: ErrorCode.INVALID_REPLICATION_FACTOR,
        1: ErrorCode.NONE,
    }


def test_what_waits_for_a_stopped_broker_can_be_listed_and_cancelled(broker: Broker) -> None:
    result(leaders.stop_broker(broker.cluster, 3))
    assert reassign(broker, {0: [3], 1: [3, 1]}) == {0: ErrorCode.NONE, 1: ErrorCode.NONE}
    assert ongoing(broker) == {0: ((3, 1), (3,), (1,)), 1: ((3, 1), (3,), ())}
    assert ongoing(broker, 1, 7) == {1: ((3, 1), (3,), ())}
    assert ongoing(broker, 0, topic="nope") == {}
    assert reassign(broker, {0: None}) == {0: ErrorCode.NONE}
    assert reassign(broker, {0: None}) == {0: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
    assert broker.cluster.topics["t"].partitions[0].replicas == (1,)
    result(leaders.start_broker(broker.cluster, 3))
    assert ongoing(broker) == {}
    assert broker.cluster.topics["t"].partitions[1].isr == (1, 3)


def test_what_cannot_be_stored_does_not_happen(store: MemoryStore, broker: Broker) -> None:
    before = broker.cluster.topics["t"]
    store.metadata.put = lambda changes: fail(StorageError("full"))
    topic = ReassignableTopic(name="t", partitions=(ReassignablePartition(partition_index=0, replicas=(2,)),))
    request = AlterPartitionReassignmentsRequest(topics=(topic,))
    response = ask(alter_partition_reassignments, broker, request, 0)
    assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.cluster.topics["t"] is before
