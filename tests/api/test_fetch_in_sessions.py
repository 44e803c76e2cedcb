"""Fetch in sessions (KIP-227). The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kshim.answering import Broker
from kshim.api.delete_topics import delete_topics
from kshim.api.fetch import fetch
from kshim.turns import Turn
from schemas.error_code import ErrorCode
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from tests.api.fetches import append, offsets, request, wanted
from tests.api.harness import advance, ask, collect, context, create, new_broker

EMPTY = FetchRequest(max_wait_ms=0, min_bytes=1, isolation_level=0, topics=())


class Client:
    """A consumer that uses a session and counts its epochs."""

    def __init__(self, broker: Broker, version: int = 12) -> None:
        self.broker = broker
        self.version = version
        self.id = 0
        self.epoch = 0

    def request(self, *partitions: FetchPartition, **more: Any) -> FetchRequest:
        session = {"session_id": self.id, "session_epoch": self.epoch, **more}
        self.epoch += 1
        if partitions:
            return request(*partitions, **session)
        settings = {"max_wait_ms": 0, "min_bytes": 1, "isolation_level": 0, **session}
        return FetchRequest(topics=(), **settings)

    def fetch(self, *partitions: FetchPartition, **more: Any) -> dict[int, Any]:
        """The answered partitions."""
        response = ask(fetch, self.broker, self.request(*partitions, **more), self.version)
        assert response.error_code == ErrorCode.NONE
        self.id = response.session_id
        return parts(response)

    def park(self, *partitions: FetchPartition, **more: Any) -> tuple[list[FetchResponse], Turn]:
        turn = Turn()
        asked = self.request(*partitions, **{"max_wait_ms": 500, **more})
        return collect(fetch(self.broker, context(self.version, turn), asked)), turn


def parts(response: FetchResponse) -> dict[int, Any]:
    return {part.partition_index: part for topic in response.responses for part in topic.partitions}


@pytest.fixture
def broker() -> Broker:
    """Topic t: ten batches of one record in partition 0, none in the other 9."""
    broker = new_broker()
    create(broker, "t", 10)
    for _ in range(10):
        append(broker)
    return broker


def ids(broker: Broker, *more: UUID) -> tuple[FetchTopic, ...]:
    known = broker.cluster.topics["t"].topic_id
    return tuple(FetchTopic(topic_id=id_, partitions=(wanted(0, 10),)) for id_ in (known, *more))


def test_a_topic_without_an_id_is_unknown_in_a_session(broker: Broker) -> None:
    """Like a topic with an id that no topic has; Kafka 4.2 failed."""

    def asked(topics: tuple[FetchTopic, ...], session: tuple[int, int], **more: Any) -> FetchResponse:
        id_, epoch = session
        response: FetchResponse = ask(
            fetch, broker, replace(EMPTY, topics=topics, session_id=id_, session_epoch=epoch, **more), 13
        )
        return response

    nameless = UUID(int=0)
    answer = asked(ids(broker, nameless), (0, 0))
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in answer.responses] == [
        (ids(broker)[0].topic_id, ErrorCode.NONE),
        (nameless, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    session_id = answer.session_id
    (again,) = asked((), (session_id, 1)).responses
    assert (again.topic_id, again.partitions[0].error_code) == (nameless, ErrorCode.UNKNOWN_TOPIC_ID)
    forgotten = (ForgottenTopic(topic_id=nameless, partitions=(0,)),)
    assert asked((), (session_id, 2), forgotten_topics_data=forgotten).responses == ()


def test_an_unknown_isolation_level_in_a_session(broker: Broker, client: Client) -> None:
    """All partitions of the session count, even quiet ones; only those in the request are answered."""
    response = ask(fetch, broker, client.request(isolation_level=3), 12)
    assert (response.error_code, response.session_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, client.id)
    assert response.responses == ()
    response = ask(fetch, broker, client.request(wanted(4, 0), wanted(77, 0), isolation_level=3), 12)
    assert {index: part.error_code for index, part in parts(response).items()} == {4: -1, 77: -1}
    assert client.fetch(wanted(0, 9)).keys() == {0, 77}


@pytest.fixture
def client(broker: Broker) -> Client:
    """A client that has read all ten partitions to their ends."""
    client = Client(broker)
    client.fetch(*(wanted(index, 0) for index in range(10)))
    client.fetch(wanted(0, 10))
    return client


def looks_at(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Counts from now on how often each partition of the log is looked at, by index."""
    seen: Counter[int] = Counter()
    indexes = {part.partition_no: part.index for part in broker.cluster.topics["t"].partitions}
    real = broker.log.offsets

    def counted(partition_no: int) -> Any:
        seen[indexes[partition_no]] += 1
        return real(partition_no)

    monkeypatch.setattr(broker.log, "offsets", counted)
    return seen


def test_only_what_is_new_is_answered(broker: Broker, client: Client) -> None:
    assert client.fetch() == {}
    append(broker, 3)
    assert [(index, offsets(part)) for index, part in client.fetch().items()] == [(3, [0])]
    assert [(index, offsets(part)) for index, part in client.fetch().items()] == [(3, [0])]
    assert client.fetch(wanted(3, 1)) == {}
    assert client.fetch(wanted(3, 9))[3].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch()[3].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch(wanted(3, 1))[3].error_code == ErrorCode.NONE


def test_quiet_partitions_are_not_looked_at(
    broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = looks_at(broker, monkeypatch)
    for _ in range(5):
        assert client.fetch() == {}
    assert seen == {}
    append(broker, 3)
    client.fetch()
    assert seen == {3: 1}


def test_a_parked_fetch_of_a_session_waits_for_all_its_partitions(broker: Broker, client: Client) -> None:
    for index in (0, 9):
        seen, _ = client.park()
        assert seen == []
        append(broker, index)
        assert list(parts(seen[0])) == [index]
        assert broker.clock.getDelayedCalls() == []
        client.fetch(wanted(index, broker.log.offsets(number(broker, index)).high_watermark))


def number(broker: Broker, index: int) -> int:
    return broker.cluster.topics["t"].partitions[index].partition_no


def test_min_bytes_counts_partitions_that_move_while_it_waits(broker: Broker, client: Client) -> None:
    seen, _ = client.park(min_bytes=300)
    append(broker, 1)
    assert seen == []
    append(broker, 2)
    assert list(parts(seen[0])) == [1, 2]


def test_a_fetch_whose_time_is_up_answers_nothing(broker: Broker, client: Client) -> None:
    seen, _ = client.park()
    advance(broker, 500)
    assert [(parts(response), response.session_id) for response in seen] == [({}, client.id)]


def test_a_hurried_fetch_answers_what_has_moved(broker: Broker, client: Client) -> None:
    seen, turn = client.park(min_bytes=10_000)
    append(broker, 4)
    turn.fire()
    assert list(parts(seen[0])) == [4]
    assert client.fetch(wanted(4, 1)) == {}


def test_the_first_fetch_of_a_session_may_wait(broker: Broker) -> None:
    client = Client(broker)
    seen, _ = client.park(wanted(1, 0), wanted(2, 0))
    append(broker, 2)
    client.id = seen[0].session_id
    assert (client.id != 0, list(parts(seen[0]))) == (True, [1, 2])
    append(broker, 1)
    assert list(client.fetch(wanted(2, 1))) == [1]


def test_a_second_request_overtakes_one_that_waits(broker: Broker, client: Client) -> None:
    first, _ = client.park()
    second, _ = client.park()
    assert first == [FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=client.id)]
    assert second == []
    append(broker, 1)
    assert list(parts(second[0])) == [1]


def test_a_deleted_topic_is_told_at_once_and_each_time(broker: Broker, client: Client) -> None:
    seen, _ = client.park()
    ask(delete_topics, broker, DeleteTopicsRequest(topic_names=("t",), timeout_ms=1), 5)
    unknown = dict.fromkeys(range(10), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert {index: part.error_code for index, part in parts(seen[0]).items()} == {0: 3}
    assert {index: part.error_code for index, part in client.fetch().items()} == unknown
    create(broker, "t", 10)
    assert {index: part.error_code for index, part in client.fetch(wanted(0, 0)).items()} == dict.fromkeys(
        range(10), ErrorCode.NONE
    )


def test_a_topic_id_stays_with_its_first_topic(broker: Broker) -> None:
    old = broker.cluster.topics["t"].topic_id
    client = Client(broker, version=13)
    client.fetch(wanted(1, 0), topic_id=old)
    ask(delete_topics, broker, DeleteTopicsRequest(topic_names=("t",), timeout_ms=1), 5)
    assert client.fetch()[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create(broker, "t", 10)
    assert client.fetch()[1].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert client.fetch(wanted(1, 0), topic_id=UUID(int=99))[1].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_nothing_is_left_of_sessions_that_end(broker: Broker) -> None:
    for _ in range(3):
        client = Client(broker)
        client.fetch(*(wanted(index, 0) for index in range(10)))
        client.fetch()
        client.epoch = -1
        client.fetch(wanted(1, 0))
    assert (client.id, len(broker.fetch_sessions)) == (0, 0)
    assert broker.log._watchers._callbacks == {}


def test_a_session_with_nothing_left_has_no_id_any_more(broker: Broker) -> None:
    client = Client(broker)
    client.fetch(wanted(1, 0))
    forgotten = (ForgottenTopic(topic="t", partitions=(1,)),)
    assert (client.fetch(forgotten_topics_data=forgotten), client.id) == ({}, 0)
    assert len(broker.fetch_sessions) == 0


def test_without_slots_every_answer_is_a_full_one() -> None:
    broker = new_broker(max_incremental_fetch_session_cache_slots=0)
    create(broker, "t", 2)
    client = Client(broker)
    for _ in range(2):
        client.epoch = 0
        assert list(client.fetch(wanted(0, 0), wanted(1, 0))) == [0, 1]
        assert client.id == 0
    assert broker.log._watchers._callbacks == {}
