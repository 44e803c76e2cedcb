"""Produce in transactions: what it asks the coordinator, and what it does with the answers.

The facts are Apache Kafka 4.2's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.answering import Broker
from kshim.api.produce import produce
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, encode
from schemas.records.end_txn_marker import EndTxnMarker
from tests.api.harness import NOW_MS, advance, batch, collect, context, create, new_broker, result

P, Q = 7, 8  # producer ids
OLD, ABORTABLE, ADDS = 9, 11, 12  # versions of Produce


class Coordinator:
    """A coordinator that gives the test's answers, at once or when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int, bool, list[tuple[str, int]]]] = []
        self.errors: dict[tuple[str, int], list[ErrorCode]] = {}
        self.held: list[Deferred[None]] | None = None

    async def submit(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        (asked,) = request.transactions
        places = [(topic.name, index) for topic in asked.topics for index in topic.partitions]
        self.asked.append(
            (asked.transactional_id, asked.producer_id, asked.producer_epoch, asked.verify_only, places)
        )
        if self.held is not None:
            turn: Deferred[None] = Deferred()
            self.held.append(turn)
            await turn
        return self.response(asked.transactional_id, places)

    def response(
        self, transactional_id: str, places: Sequence[tuple[str, int]]
    ) -> AddPartitionsToTxnResponse:
        topics = tuple(
            AddPartitionsToTxnTopicResult(
                name=name,
                results_by_partition=(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=self.error(name, index)
                    ),
                ),
            )
            for name, index in places
        )
        result = AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=topics)
        return AddPartitionsToTxnResponse(results_by_transaction=(result,))

    def error(self, name: str, index: int) -> ErrorCode:
        errors = self.errors.get((name, index), [])
        return ErrorCode.NONE if not errors else errors.pop(0) if len(errors) > 1 else errors[0]


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def broker(coordinator: Coordinator) -> Broker:
    broker = replace(new_broker(), transactions=coordinator)
    create(broker, "t", 3)
    return broker


def data(sequence: int = 0, producer_id: int = P, epoch: int = 0, value: bytes = b"v") -> bytes:
    return encode(
        [Record(0, NOW_MS, b"k", value)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


def start(broker: Broker, *records: bytes, version: int = OLD, **more: Any) -> list[Any]:
    """Send records to partitions 0, 1, …; returns a list that gets the answer."""
    more.setdefault("transactional_id", "x")
    sent = tuple(PartitionProduceData(index=index, records=item) for index, item in enumerate(records))
    topic = broker.cluster.topics["t"]
    topics = (TopicProduceData(name="t", topic_id=topic.topic_id, partition_data=sent),)
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics, **more)
    return collect(produce(broker, context(version), request))


def errors(seen: list[Any]) -> list[ErrorCode]:
    (response,) = seen
    return [ErrorCode(answer.error_code) for answer in response.responses[0].partition_responses]


def send(broker: Broker, *records: bytes, version: int = OLD, **more: Any) -> list[ErrorCode]:
    return errors(start(broker, *records, version=version, **more))


def end(broker: Broker, index: int = 0, *, committed: bool = True, epoch: int = 0, **more: Any) -> ErrorCode:
    partition_no = broker.cluster.topics["t"].partitions[index].partition_no
    marker = EndTxnMarker(P, epoch, committed, coordinator_epoch=0, timestamp_ms=NOW_MS)
    appended = broker.producers.append_marker(partition_no, marker, leader_epoch=0, now_ms=NOW_MS, **more)
    if isinstance(appended, ErrorCode):
        return appended
    result(appended)
    return ErrorCode.NONE


def test_without_transactional_id_the_whole_request_is_refused(broker: Broker) -> None:
    refused = send(broker, batch(), data(), transactional_id=None)
    assert refused == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert send(broker, batch(), transactional_id=None) == [ErrorCode.NONE]
    assert broker.log.offsets(broker.cluster.topics["t"].partitions[0].partition_no).log_end_offset == 1


def test_a_transactional_id_may_send_what_is_in_no_transaction(
    broker: Broker, coordinator: Coordinator
) -> None:
    assert send(broker, batch(), batch(producer=(P, 0, 0))) == [ErrorCode.NONE] * 2
    assert coordinator.asked == []


@pytest.mark.parametrize(
    ("version", "verify_only"), [(OLD, True), (ABORTABLE, True), (ADDS, False), (13, False)]
)
def test_each_partition_is_asked_about_once_per_transaction(
    broker: Broker, coordinator: Coordinator, version: int, verify_only: bool
) -> None:
    assert send(broker, data(), batch(), data(), version=version) == [ErrorCode.NONE] * 3
    assert send(broker, data(1), batch(), data(1), version=version) == [ErrorCode.NONE] * 3
    assert coordinator.asked == [("x", P, 0, verify_only, [("t", 0), ("t", 2)])]
    assert end(broker, 0) is ErrorCode.NONE
    assert send(broker, data(2), data(), data(2), version=version) == [ErrorCode.NONE] * 3
    assert coordinator.asked[1:] == [("x", P, 0, verify_only, [("t", 0), ("t", 1)])]


def test_two_producers_in_one_request_are_refused(broker: Broker, coordinator: Coordinator) -> None:
    assert send(broker, data(), data(producer_id=Q), batch()) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3
    assert send(broker, data(), data(epoch=1)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert coordinator.asked == []


@pytest.mark.parametrize("version", [OLD, ADDS])
@pytest.mark.parametrize("bad", [data() + data(1), data()[:-1], b""], ids=["two batches", "cut", "empty"])
def test_what_is_not_one_batch_is_not_asked_about(
    broker: Broker, coordinator: Coordinator, bad: bytes, version: int
) -> None:
    answers = send(broker, data(), bad, version=version)
    assert answers == [ErrorCode.NONE, ErrorCode.INVALID_RECORD]
    assert [places for *_, places in coordinator.asked] == [[("t", 0)]]


def test_a_second_producer_in_what_is_not_one_batch_does_not_count(
    broker: Broker, coordinator: Coordinator
) -> None:
    bad = data(producer_id=Q) + data(producer_id=Q)
    assert send(broker, data(), bad) == [ErrorCode.NONE, ErrorCode.INVALID_RECORD]


def test_partitions_that_are_not_there_are_not_asked_about(broker: Broker, coordinator: Coordinator) -> None:
    answers = send(broker, data(), data(), data(), data())
    assert answers == [*[ErrorCode.NONE] * 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert coordinator.asked[0][-1] == [("t", 0), ("t", 1), ("t", 2)]


NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
AGAIN = ErrorCode.NOT_ENOUGH_REPLICAS
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
ABORT = ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize(
    ("error", "answers"),
    [
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3),
        (ErrorCode.PRODUCER_FENCED, [ErrorCode.INVALID_PRODUCER_EPOCH] * 3),
        (ErrorCode.INVALID_TXN_STATE, [ErrorCode.INVALID_TXN_STATE] * 3),
        (ABORT, [ErrorCode.INVALID_TXN_STATE, ABORT, ABORT]),
        (BUSY, [AGAIN, AGAIN, BUSY]),
        (NOT_COORDINATOR, [AGAIN] * 3),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, [AGAIN] * 3),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [AGAIN] * 3),
    ],
)
def test_what_the_coordinator_refuses_is_not_appended(
    broker: Broker, coordinator: Coordinator, error: ErrorCode, answers: list[ErrorCode]
) -> None:
    coordinator.errors["t", 1] = [error]
    for version, answer in zip((OLD, ABORTABLE, ADDS), answers, strict=True):
        seen = start(broker, data(), data(), version=version)
        broker.clock.pump([0.02] * 6)
        assert errors(seen)[1] is answer
        assert seen[0].responses[0].partition_responses[1].error_message
    second = broker.cluster.topics["t"].partitions[1].partition_no
    assert broker.log.offsets(second).log_end_offset == 0
    assert broker.log.offsets(broker.cluster.topics["t"].partitions[0].partition_no).log_end_offset == 1


def test_while_the_last_transaction_ends_a_new_one_waits(broker: Broker, coordinator: Coordinator) -> None:
    coordinator.errors["t", 0] = [BUSY, BUSY, ErrorCode.NONE]
    seen = start(broker, data(), version=ADDS)
    advance(broker, 20)
    assert (seen, len(coordinator.asked)) == ([], 2)
    advance(broker, 20)
    assert errors(seen) == [ErrorCode.NONE]


def test_batches_keep_their_order_while_the_coordinator_thinks(
    broker: Broker, coordinator: Coordinator
) -> None:
    coordinator.held = []
    answers = [start(broker, data(sequence), version=ADDS) for sequence in range(3)]
    assert answers == [[], [], []]
    other = start(broker, data(producer_id=Q), version=ADDS)
    assert len(coordinator.held) == 2  # one request for each producer
    coordinator.held[0].callback(None)
    assert [errors(seen) for seen in answers] == [[ErrorCode.NONE]] * 3
    assert [seen[0].responses[0].partition_responses[0].base_offset for seen in answers] == [0, 1, 2]
    assert other == []
    coordinator.held[1].callback(None)
    assert errors(other) == [ErrorCode.NONE]
    assert broker.producers._turns == {}


def test_after_a_refusal_the_next_batch_is_asked_about_again(
    broker: Broker, coordinator: Coordinator
) -> None:
    coordinator.held = []
    coordinator.errors["t", 0] = [ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]
    answers = [start(broker, data(sequence)) for sequence in range(3)]
    for turn in range(3):
        coordinator.held[turn].callback(None)
    too_early = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [errors(seen) for seen in answers] == [[AGAIN], [too_early], [too_early]]
    coordinator.held = None
    assert [send(broker, data(sequence)) for sequence in range(3)] == [[ErrorCode.NONE]] * 3


def test_an_answer_from_before_the_end_no_longer_counts(broker: Broker, coordinator: Coordinator) -> None:
    coordinator.held = []
    seen = start(broker, data())
    end(broker, committed=False)
    coordinator.held[0].callback(None)
    assert errors(seen) == [ErrorCode.INVALID_TXN_STATE]
    assert seen[0].responses[0].partition_responses[0].log_start_offset == 0


def test_a_batch_of_an_earlier_epoch_is_refused_unasked(broker: Broker, coordinator: Coordinator) -> None:
    send(broker, data(epoch=1))
    end(broker, epoch=2)
    coordinator.asked.clear()
    assert send(broker, data(1, epoch=1)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert send(broker, data(0, epoch=1)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert coordinator.asked == []
    assert send(broker, data(0, epoch=2)) == [ErrorCode.NONE]


def test_a_repeated_batch_is_known_while_its_transaction_is_open(
    broker: Broker, coordinator: Coordinator
) -> None:
    first = start(broker, data())
    again = start(broker, data())
    offsets = [seen[0].responses[0].partition_responses[0].base_offset for seen in (first, again)]
    assert offsets == [0, 0]
    end(broker)
    assert send(broker, data()) == [ErrorCode.NONE]
    assert len(coordinator.asked) == 2  # as in Kafka, which asks before it checks


def test_late_markers_are_refused(broker: Broker) -> None:
    send(broker, data(epoch=3))
    assert end(broker, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(broker, epoch=3, transaction_version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(broker, epoch=4, transaction_version=2) is ErrorCode.NONE


def test_a_transactional_batch_without_producer_id_begins_no_transaction(
    broker: Broker, coordinator: Coordinator
) -> None:
    assert send(broker, data(-1, producer_id=-1, epoch=-1)) == [ErrorCode.NONE]
    offsets = broker.log.offsets(broker.cluster.topics["t"].partitions[0].partition_no)
    assert (coordinator.asked, offsets.last_stable_offset) == ([], 1)
