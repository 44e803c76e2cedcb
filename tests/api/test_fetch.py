"""Fetch: what is read, what is refused, and how long it waits. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kshim.answering import Broker
from kshim.api.delete_topics import delete_topics
from kshim.api.fetch import fetch
from kshim.cluster import Topic
from kshim.turns import Turn
from kshim.turns.unread import LEAST_ANSWER_BYTES, MOST_ANSWER_BYTES, MOST_BYTES
from schemas.error_code import ErrorCode
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.api.fetches import append, offsets, read, read_one, request, wanted
from tests.api.harness import advance, ask, batch, collect, context, create, new_broker

SIZE = len(batch(b"x" * 100))


@pytest.fixture
def broker() -> Broker:
    """Topic t: ten batches of one record in partition 0, none in 1 and 2."""
    broker = new_broker()
    create(broker, "t", 3)
    for _ in range(10):
        append(broker)
    return broker


@pytest.fixture
def topic(broker: Broker) -> Topic:
    return broker.cluster.topics["t"]


# ---- reading


def test_reads_from_an_offset_to_the_end(broker: Broker) -> None:
    data = read_one(broker, 4)
    assert offsets(data) == [4, 5, 6, 7, 8, 9]
    assert (data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset) == (
        0,
        10,
        10,
        0,
    )
    assert data.preferred_read_replica == -1


def test_at_the_end_there_are_empty_records_not_null(broker: Broker) -> None:
    assert read_one(broker, 10).records == b""


@pytest.mark.parametrize("offset", [-1, 11])
def test_an_offset_outside_of_the_log(broker: Broker, offset: int) -> None:
    data = read_one(broker, offset)
    assert (data.error_code, data.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)


def test_aborted_transactions_are_null_unless_committed_records_are_asked_for(broker: Broker) -> None:
    assert read_one(broker, 0).aborted_transactions is None
    assert read_one(broker, 0, isolation_level=1).aborted_transactions == ()
    assert read_one(broker, 99, isolation_level=1).aborted_transactions is None
    assert read(broker, wanted(9, 0))[0].aborted_transactions == ()


def test_an_unknown_isolation_level(broker: Broker) -> None:
    response = ask(fetch, broker, request(wanted(0, 0), isolation_level=2), 12)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("max_bytes", "aborted"), [(0, ()), (1, None)])
def test_aborted_transactions_are_null_where_a_batch_does_not_fit(
    broker: Broker, max_bytes: int, aborted: object
) -> None:
    """They are an empty list if a limit, whichever it is, leaves no room at all."""
    append(broker, 1)
    for limits in ((max_bytes, 1 << 20), (1 << 20, SIZE + max_bytes)):
        first, second = read(
            broker, wanted(0, 0, SIZE), wanted(1, 0, limits[0]), isolation_level=1, max_bytes=limits[1]
        )
        assert (len(first.records or b""), first.aborted_transactions) == (SIZE, ())
        assert (second.records, second.aborted_transactions) == (b"", aborted)


@pytest.mark.parametrize("level", [2, 3, -1])
def test_an_isolation_level_counts_where_there_is_something_to_read(broker: Broker, level: int) -> None:
    """Each entry of the request is answered, even one that is there twice."""
    asked = request(wanted(0, 0), wanted(3, 0), wanted(0, 5), isolation_level=level)
    response = ask(fetch, broker, asked, 12)
    (topic,) = response.responses
    assert [part.partition_index for part in topic.partitions] == [0, 3, 0]
    assert {part.error_code for part in topic.partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    unknown = ask(fetch, broker, request(wanted(3, 0), isolation_level=level), 12)
    assert unknown.error_code == 0
    assert unknown.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_without_an_id_can_only_be_the_last_of_an_answer(broker: Broker, topic: Topic) -> None:
    def answered(*topics: tuple[UUID, int]) -> tuple[int, list[int]]:
        asked = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            isolation_level=0,
            topics=tuple(FetchTopic(topic_id=id_, partitions=(wanted(index, 0),)) for id_, index in topics),
        )
        response = ask(fetch, broker, asked, 13)
        return response.error_code, [
            part.error_code for each in response.responses for part in each.partitions
        ]

    none, known, never = UUID(int=0), topic.topic_id, UUID(int=9)
    unknown, failed = ErrorCode.UNKNOWN_TOPIC_ID, (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert answered((none, 0), (known, 0)) == (0, [0, unknown])
    assert answered((never, 0), (none, 0)) == (0, [unknown, unknown])
    assert answered((none, 0), (none, 0)) == (0, [unknown])
    assert answered((none, 0), (never, 0)) == failed
    assert answered((none, 0), (none, 1)) == failed
    assert answered((known, 3), (none, 0)) == failed  # an unknown id comes first


def test_unknown_topics_and_partitions(broker: Broker, topic: Topic) -> None:
    assert read(broker, wanted(3, 0))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert read_one(broker, 0, topic="nope").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert read_one(broker, 0, 13, topic_id=topic.topic_id).error_code == ErrorCode.NONE
    assert read_one(broker, 0, 13, topic_id=UUID(int=9)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert read_one(broker, 0, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    (unknown,) = read(broker, wanted(3, 0), version=13, topic_id=topic.topic_id)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_consumers_fetch(broker: Broker, topic: Topic) -> None:
    assert read_one(broker, 0, 4, replica_id=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read_one(broker, 0, 4, replica_id=-2).error_code == ErrorCode.NONE
    follower = ReplicaState(replica_id=1, replica_epoch=0)
    data = read_one(broker, 0, 15, topic_id=topic.topic_id, replica_state=follower)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# ---- limits


@pytest.mark.parametrize(("limit", "count"), [(0, 1), (1, 1), (2 * SIZE, 2), (3 * SIZE - 1, 2)])
def test_whole_batches_up_to_the_limit_but_at_least_one(broker: Broker, limit: int, count: int) -> None:
    assert len(offsets(read_one(broker, 0, partition={"max_bytes": limit}))) == count
    assert len(offsets(read_one(broker, 0, max_bytes=limit))) == count


def test_only_the_first_partition_that_has_records_may_exceed_the_limits(broker: Broker) -> None:
    append(broker, 1)
    first, second = read(broker, wanted(0, 0, 1), wanted(1, 0, 1))
    assert (len(offsets(first)), second.records, second.high_watermark) == (1, b"", 1)
    first, second = read(broker, wanted(0, 10), wanted(1, 0, 1), max_bytes=1)
    assert (first.records, len(offsets(second))) == (b"", 1)


def test_all_partitions_share_max_bytes(broker: Broker) -> None:
    append(broker, 1)
    ask_both = (wanted(0, 0, 3 * SIZE), wanted(1, 0, 3 * SIZE))
    counts = [len(offsets(data)) for data in read(broker, *ask_both, max_bytes=4 * SIZE)]
    assert counts == [3, 1]
    counts = [len(offsets(data)) for data in read(broker, *ask_both, max_bytes=4 * SIZE - 1)]
    assert counts == [3, 0]


def test_the_brokers_own_limit_holds_whatever_is_asked_for() -> None:
    broker = new_broker(fetch_max_bytes=1024)
    create(broker, "t")
    for _ in range(20):
        append(broker)
    assert len(read_one(broker, 0).records or b"") <= 1024


@pytest.mark.parametrize("limits", [{"max_bytes": -1}, {"partition": {"max_bytes": -1}}])
def test_limits_below_zero(broker: Broker, limits: dict[str, Any]) -> None:
    assert read_one(broker, 0, **limits).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# ---- epochs and sessions


def test_leader_epochs(broker: Broker) -> None:
    def error(epoch: int) -> int:
        return read_one(broker, 0, partition={"current_leader_epoch": epoch}).error_code

    assert [error(-2), error(-1), error(0)] == [0, 0, 0]
    assert error(1) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_last_fetched_epoch_shows_where_the_logs_part(broker: Broker) -> None:
    def fetched(offset: int, epoch: int) -> PartitionData:
        return read_one(broker, offset, partition={"last_fetched_epoch": epoch})

    assert fetched(10, 0).error_code == ErrorCode.NONE
    parted = fetched(99, 0)
    assert (parted.error_code, parted.records) == (ErrorCode.NONE, b"")
    assert parted.diverging_epoch == EpochEndOffset(epoch=0, end_offset=10)
    assert fetched(0, 7).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("session", [(0, -1), (7, -1)])
def test_a_final_epoch_wants_no_session(broker: Broker, session: tuple[int, int]) -> None:
    response = ask(fetch, broker, request(wanted(0, 0), session_id=session[0], session_epoch=session[1]), 12)
    assert (response.error_code, response.session_id, len(response.responses)) == (0, 0, 1)


@pytest.mark.parametrize("session", [(0, 1), (5, 1), (0, -2)])
def test_a_request_within_a_session_is_refused(broker: Broker, session: tuple[int, int]) -> None:
    response = ask(fetch, broker, request(wanted(0, 0), session_id=session[0], session_epoch=session[1]), 12)
    assert response == FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


# ---- waiting


class Parked:
    """A Fetch that waits for its answer."""

    def __init__(self, broker: Broker, *partitions: FetchPartition, **more: Any) -> None:
        self.broker = broker
        self.turn = Turn()
        settings = {"max_wait_ms": 500, **more}
        self.seen = collect(fetch(broker, context(12, self.turn), request(*partitions, **settings)))
        assert self.seen == [], "answered at once"

    def partitions(self) -> tuple[PartitionData, ...]:
        """The answer; no watcher or timer may be left."""
        (response,) = self.seen
        assert self.broker.clock.getDelayedCalls() == []
        assert self.broker.log._watchers._callbacks == {}
        return tuple(response.responses[0].partitions)


def test_waits_until_its_time_is_up(broker: Broker) -> None:
    parked = Parked(broker, wanted(0, 10))
    advance(broker, 499)
    assert parked.seen == []
    advance(broker, 1)
    assert parked.partitions()[0].records == b""


def test_an_append_answers_at_once(broker: Broker) -> None:
    parked = Parked(broker, wanted(0, 10), wanted(1, 0))
    append(broker, 2)
    assert parked.seen == []
    append(broker, 1)
    first, second = parked.partitions()
    assert (first.records, offsets(second)) == (b"", [0])


def test_min_bytes_of_all_partitions_together(broker: Broker) -> None:
    parked = Parked(broker, wanted(0, 9), wanted(1, 0), min_bytes=3 * SIZE)
    append(broker, 1)
    assert parked.seen == []
    append(broker, 0)
    assert [offsets(data) for data in parked.partitions()] == [[9, 10], [0]]


def test_a_limit_that_is_reached_counts_as_enough_bytes(broker: Broker) -> None:
    """Whole batches rarely add up to min_bytes exactly; a partition that its limit cuts short counts in
    full."""
    limit = 2 * SIZE + 10
    assert (
        len(offsets(read_one(broker, 0, partition={"max_bytes": limit}, min_bytes=limit, max_wait_ms=500)))
        == 2
    )
    assert len(offsets(read_one(broker, 0, max_bytes=SIZE, min_bytes=5 * SIZE, max_wait_ms=500))) == 1


def test_a_partition_adds_no_more_than_its_limit(broker: Broker) -> None:
    parked = Parked(broker, wanted(0, 10, SIZE), wanted(1, 0, SIZE), min_bytes=2 * SIZE)
    append(broker)
    append(broker)
    append(broker)
    assert parked.seen == []
    append(broker, 1)
    assert [len(offsets(data)) for data in parked.partitions()] == [1, 1]


def test_min_bytes_that_come_in_many_small_appends_are_read_once_each(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked = Parked(broker, wanted(0, 10), min_bytes=50 * SIZE)
    read_bytes: list[int] = []
    real_read = broker.log.read

    def counted_read(*args: Any, **more: Any) -> bytes:
        data = real_read(*args, **more)
        read_bytes.append(len(data))
        return data

    monkeypatch.setattr(broker.log, "read", counted_read)
    for _ in range(49):
        append(broker)
    assert (parked.seen, sum(read_bytes)) == ([], 49 * SIZE)
    append(broker)
    assert len(offsets(parked.partitions()[0])) == 50


def test_waits_for_very_long_and_very_much(broker: Broker) -> None:
    parked = Parked(broker, wanted(0, 10), max_wait_ms=2**31 - 1, min_bytes=2**31 - 1)
    append(broker)
    advance(broker, 20_000_000)
    assert parked.seen == []
    parked.turn.fire()
    assert offsets(parked.partitions()[0]) == [10]


def test_a_request_behind_it_ends_the_wait(broker: Broker) -> None:
    parked = Parked(broker, wanted(0, 10))
    parked.turn.fire()
    assert parked.partitions()[0].records == b""
    append(broker)
    advance(broker, 1000)
    assert len(parked.seen) == 1


def test_a_hurried_fetch_does_not_wait(broker: Broker) -> None:
    turn = Turn()
    turn.fire()
    answer = fetch(broker, context(12, turn), request(wanted(0, 10), max_wait_ms=500))
    assert isinstance(answer, FetchResponse)


@pytest.mark.parametrize(
    "at_once",
    [
        {"max_wait_ms": 0},
        {"max_wait_ms": -1},
        {"max_wait_ms": 500, "min_bytes": 0},
        {"max_wait_ms": 500, "min_bytes": -1},
    ],
)
def test_does_not_wait_without_time_or_need(broker: Broker, at_once: dict[str, int]) -> None:
    assert read_one(broker, 10, **at_once).records == b""


def test_an_error_of_a_log_ends_the_wait_an_unknown_partition_does_not(broker: Broker) -> None:
    first, second = read(broker, wanted(0, 10), wanted(1, 99), max_wait_ms=500)
    assert (first.error_code, second.error_code) == (0, ErrorCode.OFFSET_OUT_OF_RANGE)
    parked = Parked(broker, wanted(0, 10), wanted(9, 0))
    append(broker)
    assert [data.error_code for data in parked.partitions()] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_nothing_to_wait_for_is_answered_at_once(broker: Broker) -> None:
    assert read(broker, wanted(9, 0), max_wait_ms=500)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = fetch(
        broker, context(12), FetchRequest(max_wait_ms=500, min_bytes=1, isolation_level=0, topics=())
    )
    assert answer == FetchResponse()


def test_a_topic_that_is_deleted_ends_the_wait_at_once(broker: Broker) -> None:
    for position, min_bytes in ((wanted(0, 10), 1), (wanted(1, 0), 1000)):
        parked = Parked(broker, position, min_bytes=min_bytes)
        ask(delete_topics, broker, DeleteTopicsRequest(topic_names=("t",), timeout_ms=1), 5)
        assert parked.partitions()[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create(broker, "t", 3)
        for _ in range(10):
            append(broker)


# ---- memory


def test_the_less_clients_read_the_less_is_answered(broker: Broker) -> None:
    for _ in range(8):
        append(broker, 1, value=bytes(40_000))
    broker.unread.bytes = MOST_BYTES - 4 * 40_500
    assert len(offsets(read(broker, wanted(1, 0))[0])) == 2
    advance(broker)
    broker.unread.bytes = 2 * MOST_BYTES
    assert len(offsets(read(broker, wanted(1, 0))[0])) == LEAST_ANSWER_BYTES // 40_000


def test_the_answers_of_one_turn_share_what_is_read(broker: Broker) -> None:
    for _ in range(20):
        append(broker, 1, value=bytes(1_000_000))
    many = wanted(1, 0, 20_000_000)
    assert len(offsets(read(broker, many)[0])) == MOST_ANSWER_BYTES // 1_000_000
    assert len(offsets(read(broker, many)[0])) == 1
    advance(broker)
    assert len(offsets(read(broker, many)[0])) == MOST_ANSWER_BYTES // 1_000_000
