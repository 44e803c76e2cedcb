"""DeleteTopics: by name, from v6 on by id. Facts: Apache Kafka 4.2's, except for the internal topic."""

from __future__ import annotations

from uuid import UUID

import pytest

from kshim.answering import Broker
from kshim.api.create_topics import create_topics
from kshim.api.delete_topics import delete_topics
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from tests.api.harness import NOW_MS, HeldStore, ask, batch, collect, context, create, new_broker, result

ZERO = UUID(int=0)


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    for name in ("a", "b"):
        create(broker, name)
    return broker


def by_name(broker: Broker, *names: str, version: int = 5) -> dict[str | None, int]:
    request = DeleteTopicsRequest(topic_names=names, timeout_ms=1000)
    response = ask(delete_topics, broker, request, version)
    assert len(response.responses) == len(set(names))
    return {answer.name: answer.error_code for answer in response.responses}


def by_state(broker: Broker, *states: tuple[str | None, UUID]) -> list[DeletableTopicResult]:
    topics = tuple(DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states)
    request = DeleteTopicsRequest(topics=topics, timeout_ms=1000)
    return list(ask(delete_topics, broker, request, 6).responses)


def test_by_name(broker: Broker) -> None:
    assert by_name(broker, "a", "nope") == {"a": 0, "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert by_name(broker, "a") == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert "b" in broker.cluster.topics


def test_groups_forget_what_they_committed_for_it(broker: Broker) -> None:
    by_name(broker, "b", "nope", "a", "__consumer_offsets")
    assert broker.groups.deleted == ["b", "a"]


def test_a_name_given_twice_is_not_deleted(broker: Broker) -> None:
    assert by_name(broker, "a", "a", "b") == {"a": ErrorCode.INVALID_REQUEST, "b": 0}
    assert "a" in broker.cluster.topics


def test_by_id(broker: Broker) -> None:
    topic_id = broker.cluster.topics["a"].topic_id
    (deleted,) = by_state(broker, (None, topic_id))
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("a", topic_id, 0)
    (again,) = by_state(broker, (None, topic_id))
    assert (again.name, again.topic_id, again.error_code) == (None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    assert again.error_message == "This server does not host this topic ID."


def test_entries_that_are_wrong_by_themselves_are_answered_one_by_one(broker: Broker) -> None:
    topic_id = broker.cluster.topics["a"].topic_id
    for entry in ((None, ZERO), ("a", topic_id), ("nope", UUID(int=7))):
        answers = by_state(broker, entry, entry)
        assert [(answer.name, answer.topic_id) for answer in answers] == [entry, entry]
        assert {answer.error_code for answer in answers} == {ErrorCode.INVALID_REQUEST}
    assert "a" in broker.cluster.topics


def test_entries_that_are_not_one_name_or_one_id(broker: Broker) -> None:
    topic_id = broker.cluster.topics["a"].topic_id
    cases: list[tuple[list[tuple[str | None, UUID]], str]] = [
        ([(None, ZERO)], "Neither topic name nor id were specified."),
        ([("a", topic_id)], "You may not specify both topic name and topic id."),
        ([("nope", UUID(int=9))], "You may not specify both topic name and topic id."),
        ([(None, topic_id), (None, topic_id)], "Duplicate topic id."),
        ([("a", ZERO), (None, topic_id)], "The provided topic name maps to an ID that was already supplied."),
    ]
    for states, message in cases:
        (refused,) = by_state(broker, *states)
        assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert "a" in broker.cluster.topics


def test_the_internal_topic_stays(broker: Broker) -> None:
    """Kafka deletes it, and all groups with it."""
    assert by_name(broker, "__consumer_offsets") == {"__consumer_offsets": ErrorCode.POLICY_VIOLATION}
    assert len(broker.cluster.topics["__consumer_offsets"].partitions) == 50


def test_a_topic_made_again_is_another_one(broker: Broker) -> None:
    old = broker.cluster.topics["a"]
    result(broker.log.append(old.partitions[0].partition_no, batch(), now_ms=NOW_MS))
    by_name(broker, "a")
    new = create(broker, "a")
    assert new.topic_id != old.topic_id
    assert new.partitions[0].partition_no > old.partitions[0].partition_no
    assert broker.log.offsets(new.partitions[0].partition_no).log_end_offset == 0
    assert broker.log.offsets(old.partitions[0].partition_no).log_end_offset == 0


def test_the_answer_comes_when_the_deletion_is_durable() -> None:
    store = HeldStore()
    broker = new_broker(store)
    broker.cluster.auto_create_topics(["a"])
    store.release_all()
    request = DeleteTopicsRequest(topic_names=("a",), timeout_ms=1)
    seen = collect(delete_topics(broker, context(5), request))
    assert (seen, "a" in broker.cluster.topics) == ([], True)
    store.release()
    assert (seen[0].responses[0].error_code, "a" in broker.cluster.topics) == (0, False)


def test_a_deletion_that_cannot_be_stored_deletes_nothing() -> None:
    store = HeldStore()
    broker = new_broker(store)
    broker.cluster.auto_create_topics(["a"])
    store.release_all()
    request = DeleteTopicsRequest(topic_names=("a",), timeout_ms=1)
    seen = collect(delete_topics(broker, context(5), request))
    store.fail()
    assert seen[0].responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "a" in broker.cluster.topics


def test_a_deletion_and_a_creation_of_one_name_come_one_after_the_other() -> None:
    store = HeldStore()
    broker = new_broker(store)
    broker.cluster.auto_create_topics(["a"])
    store.release_all()
    old = broker.cluster.topics["a"]
    deletion = DeleteTopicsRequest(topic_names=("a",), timeout_ms=1)
    creation = CreateTopicsRequest(
        topics=(CreatableTopic(name="a", num_partitions=1, replication_factor=1, assignments=(), configs=()),)
    )
    seen = [
        collect(delete_topics(broker, context(5), deletion)),
        collect(create_topics(broker, context(7), creation)),
        collect(delete_topics(broker, context(5), deletion)),
    ]
    store.release_all()
    assert seen[0][0].responses[0].error_code == 0
    assert seen[1][0].topics[0].error_code == 0
    # The append was sent when only the old topic existed.
    assert seen[2][0].responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.cluster.topics["a"].topic_id not in (old.topic_id, ZERO)
