"""ElectLeaders: which replica leads next. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import pytest
from twisted.internet.defer import fail

from kshim.answering import Broker
from kshim.api.elect_leaders import elect_leaders
from kshim.cluster import leaders
from kshim.cluster.replicas import Election
from kshim.storage.interfaces import StorageError
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from schemas.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from tests.api.harness import ask, create, new_broker, result

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def broker(store: MemoryStore) -> Broker:
    """Broker 1 of 3. All brokers have replicas of all partitions of t; partition 1 is not led by its
    preferred leader."""
    broker = new_broker(store, brokers=3)
    create(broker, "t", 3)
    everywhere = [(("t", index), nodes) for index, nodes in enumerate([(1, 2, 3), (2, 3, 1), (3, 1, 2)])]
    result(leaders.reassign(broker.cluster, everywhere))
    result(
        leaders.elect(broker.cluster, Election.PREFERRED, list(leaders.all_partitions(broker.cluster.topics)))
    )
    result(leaders.move_leader(broker.cluster, ("t", 1), 3))
    return broker


def elect(broker: Broker, *indexes: int, election: int = PREFERRED, topic: str = "t") -> dict[int, ErrorCode]:
    wanted = (TopicPartitions(topic=topic, partitions=indexes),)
    request = ElectLeadersRequest(election_type=election, topic_partitions=wanted)
    response: ElectLeadersResponse = ask(elect_leaders, broker, request, 2)
    assert response.error_code == ErrorCode.NONE
    (results,) = response.replica_election_results
    assert results.topic == topic
    return {each.partition_id: ErrorCode(each.error_code) for each in results.partition_result}


def raw(broker: Broker, *wanted: tuple[str, tuple[int, ...]], election: int) -> ElectLeadersResponse:
    topics = tuple(TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in wanted)
    request = ElectLeadersRequest(election_type=election, topic_partitions=topics)
    response: ElectLeadersResponse = ask(elect_leaders, broker, request, 2)
    return response


def results_of(response: ElectLeadersResponse) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (result.topic, [(each.partition_id, each.error_code) for each in result.partition_result])
        for result in response.replica_election_results
    ]


def test_every_entry_is_answered(broker: Broker) -> None:
    """A partition that is named twice is answered twice by its state before, and elected once."""
    epoch = broker.cluster.topics["t"].partitions[1].leader_epoch
    response = raw(broker, ("t", (1, 1)), ("t", ()), ("t", (0, 1)), election=PREFERRED)
    not_needed = ErrorCode.ELECTION_NOT_NEEDED
    assert results_of(response) == [("t", [(1, 0), (1, 0)]), ("t", []), ("t", [(0, not_needed), (1, 0)])]
    assert broker.cluster.topics["t"].partitions[1].leader_epoch == epoch + 1


def test_the_preferred_leader_leads_again(broker: Broker) -> None:
    before = broker.cluster.topics["t"].partitions[1]
    assert elect(broker, 1) == {1: ErrorCode.NONE}
    after = broker.cluster.topics["t"].partitions[1]
    assert (after.leader, after.leader_epoch) == (after.replicas[0], before.leader_epoch + 1)


def test_each_partition_gets_its_own_answer(broker: Broker) -> None:
    assert elect(broker, 1, 0, 9) == {
        1: ErrorCode.NONE,
        0: ErrorCode.ELECTION_NOT_NEEDED,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert elect(broker, 0, topic="nope") == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_of_all_partitions_only_those_that_change_are_in_the_answer(broker: Broker) -> None:
    response = ask(elect_leaders, broker, ElectLeadersRequest(topic_partitions=None), 2)
    by_topic = {each.topic: each.partition_result for each in response.replica_election_results}
    assert by_topic.keys() == {"t", "__consumer_offsets"}
    assert [each.partition_id for each in by_topic["t"]] == [1]
    assert by_topic["__consumer_offsets"] == ()


def test_a_preferred_leader_that_does_not_run(broker: Broker) -> None:
    preferred = broker.cluster.topics["t"].partitions[1].replicas[0]
    result(leaders.stop_broker(broker.cluster, preferred))
    assert elect(broker, 1) == {1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_an_unclean_election_is_for_those_without_a_leader(broker: Broker) -> None:
    assert elect(broker, 0, election=UNCLEAN) == {0: ErrorCode.ELECTION_NOT_NEEDED}
    alone = broker.cluster.topics["t"].partitions[0]
    result(leaders.reassign(broker.cluster, [(("t", 0), [alone.leader])]))
    result(leaders.stop_broker(broker.cluster, alone.leader))
    assert elect(broker, 0, election=UNCLEAN) == {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_an_election_that_kafka_does_not_know(broker: Broker) -> None:
    request = ElectLeadersRequest(election_type=7, topic_partitions=None)
    response = ask(elect_leaders, broker, request, 2)
    assert (response.error_code, response.replica_election_results) == (ErrorCode.INVALID_REQUEST, ())
    leader = broker.cluster.topics["t"].partitions[1].leader
    response = raw(broker, ("t", (1, 1)), ("nope", (0,)), election=7)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert results_of(response) == [("t", [(1, 42), (1, 42)]), ("nope", [(0, 42)])]
    assert broker.cluster.topics["t"].partitions[1].leader == leader
    assert raw(broker, election=7) == ElectLeadersResponse()


def test_what_cannot_be_stored_does_not_happen(store: MemoryStore, broker: Broker) -> None:
    before = broker.cluster.topics["t"]
    store.metadata.put = lambda changes: fail(StorageError("full"))
    response = ask(elect_leaders, broker, ElectLeadersRequest(topic_partitions=None), 2)
    assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.cluster.topics["t"] is before
