"""CreatePartitions: what is added, and how errors are worded. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.create_partitions import create_partitions
from schemas.error_code import ErrorCode
from schemas.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tests.api.harness import HeldStore, ask, collect, context, create, new_broker


def wanted(
    name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else tuple(CreatePartitionsAssignment(broker_ids=tuple(ids)) for ids in assignments),
    )


def request(*topics: CreatePartitionsTopic, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    create(broker, "t", 4)
    return broker


def test_new_partitions_come_behind_the_old_ones(broker: Broker) -> None:
    before = broker.cluster.topics["t"]
    response = ask(create_partitions, broker, request(wanted("t", 6, [[1], [1]])), 3)
    assert (response.results[0].error_code, response.results[0].error_message) == (0, None)
    after = broker.cluster.topics["t"]
    assert after.topic_id == before.topic_id
    assert broker.cluster.topic_by_id(before.topic_id) is after
    assert after.partitions[:4] == before.partitions
    assert [partition.index for partition in after.partitions] == list(range(6))
    assert len({partition.partition_no for partition in after.partitions}) == 6


def test_validate_only_adds_nothing(broker: Broker) -> None:
    response = ask(create_partitions, broker, request(wanted("t", 6), validate_only=True), 3)
    assert response.results[0].error_code == 0
    assert len(broker.cluster.topics["t"].partitions) == 4


REFUSED: dict[str, tuple[CreatePartitionsTopic, ErrorCode, str | None]] = {
    "same": (wanted("t", 4), ErrorCode.INVALID_PARTITIONS, "Topic already has 4 partition(s)."),
    "fewer": (
        wanted("t", 3),
        ErrorCode.INVALID_PARTITIONS,
        "The topic t currently has 4 partition(s); 3 would not be an increase.",
    ),
    "unknown": (wanted("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    "too many": (
        wanted("t", 20_000),
        ErrorCode.POLICY_VIOLATION,
        "Excessively large number of partitions per request.",
    ),
    "assignments": (
        wanted("t", 6, [[1]]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    ),
    "no assignments": (
        wanted("t", 5, []),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
    ),
    "stranger": (
        wanted("t", 5, [[2]]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 2, but no such broker is registered.",
    ),
    "nobody": (
        wanted("t", 5, [[]]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    ),
    "count before assignments": (
        wanted("t", 4, [[2]]),
        ErrorCode.INVALID_PARTITIONS,
        "Topic already has 4 partition(s).",
    ),
    # Kafka adds them, and from then on looks for groups in the wrong partitions.
    "internal": (
        wanted("__consumer_offsets", 60),
        ErrorCode.POLICY_VIOLATION,
        "Topic __consumer_offsets is internal; it cannot be deleted or given partitions.",
    ),
}


@pytest.mark.parametrize(("topic", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(
    broker: Broker, topic: CreatePartitionsTopic, error: ErrorCode, message: str | None
) -> None:
    before = dict(broker.cluster.topics)
    (refused,) = ask(create_partitions, broker, request(topic), 3).results
    assert (refused.error_code, refused.error_message) == (error, message)
    assert broker.cluster.topics == before


def test_each_topic_by_itself_and_none_that_is_named_twice(broker: Broker) -> None:
    create(broker, "u")
    response = ask(create_partitions, broker, request(wanted("t", 5), wanted("t", 6), wanted("u", 2)), 3)
    answers: dict[Any, Any] = {answer.name: answer.error_code for answer in response.results}
    assert answers == {"t": ErrorCode.INVALID_REQUEST, "u": 0}
    assert ask(create_partitions, broker, request(), 3) == CreatePartitionsResponse()


def test_partitions_are_there_once_they_are_durable() -> None:
    store = HeldStore()
    broker = new_broker(store)
    broker.cluster.auto_create_topics(["t"])
    store.release_all()
    failed = collect(create_partitions(broker, context(3), request(wanted("t", 3))))
    store.fail()
    assert failed[0].results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    made = collect(create_partitions(broker, context(3), request(wanted("t", 3))))
    assert (made, len(broker.cluster.topics["t"].partitions)) == ([], 1)
    store.release()
    assert (made[0].results[0].error_code, len(broker.cluster.topics["t"].partitions)) == (0, 3)
