"""Fetch sessions: ids, epochs, turns, due partitions, and eviction. The rules are Apache Kafka 4.2's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from kshim.fetching import sessions as fetch_sessions
from kshim.fetching.sessions import CachedPartition, FetchSession, FetchSessions
from kshim.storage.memory import MemoryLog
from schemas.error_code import ErrorCode
from schemas.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from schemas.records.batch import Record, encode

MINUTE_MS = 60_000
SLOTS = 3


def request(
    *places: tuple[str, int],
    session: tuple[int, int] = (0, 0),
    forget: tuple[tuple[str, int], ...] = (),
    **more: Any,
) -> FetchRequest:
    """places: (topic, partition), each fetched from offset 0 unless `offset` says otherwise."""
    offset = more.pop("offset", 0)
    settings = {"max_wait_ms": 0, "min_bytes": 1, "isolation_level": 0, **more}
    return FetchRequest(
        session_id=session[0],
        session_epoch=session[1],
        topics=tuple(
            FetchTopic(
                topic=topic,
                partitions=(FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1),),
            )
            for topic, index in places
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic=topic, partitions=(index,)) for topic, index in forget
        ),
        **settings,
    )


def data(high_watermark: int = 0, records: bytes = b"", **more: Any) -> PartitionData:
    settings = {"partition_index": 0, "error_code": 0, "log_start_offset": 0, **more}
    return PartitionData(high_watermark=high_watermark, records=records, **settings)


ERROR = data(-1, error_code=ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=-1)


class Sessions(FetchSessions):
    """Sessions with ids 1, 2, … and the test's own clock."""

    def __init__(self, slots: int = SLOTS) -> None:
        super().__init__(count(1).__next__)
        self.slots = slots
        self.now_ms = 0

    def begin(self, *places: tuple[str, int]) -> FetchSession:
        """A session whose partitions were all read to the end. If there is no room for it, its id is 0."""
        session = self.ask(*places, session=(0, 0))
        answer_all(session)
        self.keep(session, self.slots, self.now_ms)
        return session

    def ask(self, *places: tuple[str, int], session: tuple[int, int], **more: Any) -> FetchSession:
        opened = self.error_or_session(*places, session=session, **more)
        assert isinstance(opened, FetchSession), opened
        return opened

    def error_or_session(
        self, *places: tuple[str, int], session: tuple[int, int], by_topic_id: bool = False, **more: Any
    ) -> FetchSession | ErrorCode:
        return self.open(request(*places, session=session, **more), by_topic_id, self.now_ms)


def answer_all(session: FetchSession, **told: PartitionData) -> list[str]:
    """Answer all due partitions as read to their ends, or with `told` by topic; return the topics to
    report."""
    return [
        cached.topic.name or ""
        for cached in session.due()
        if session.answered(cached, told.get(cached.topic.name or "", data()), False)
    ]


def due(session: FetchSession) -> list[str]:
    return [cached.topic.name or "" for cached in session.due()]


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


# ---- ids and epochs


def test_a_session_goes_on_epoch_by_epoch(sessions: Sessions) -> None:
    session = sessions.begin(("a", 0))
    assert session.id == 1
    for epoch in (1, 2, 3):
        assert sessions.ask(session=(1, epoch)) is session
    for epoch in (3, 5, -2):
        assert sessions.error_or_session(session=(1, epoch)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.error_or_session(session=(2, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_epochs_wrap_to_one(sessions: Sessions) -> None:
    session = sessions.begin(("a", 0))
    session.epoch = 2**31 - 1
    sessions.ask(session=(1, 2**31 - 1))
    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_ends_the_session_it_names(sessions: Sessions, epoch: int) -> None:
    sessions.begin(("a", 0))
    assert sessions.ask(("b", 0), session=(1, epoch)).id == 0
    assert sessions.error_or_session(session=(1, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_by_name_is_not_one_by_id(sessions: Sessions) -> None:
    sessions.begin(("a", 0))
    by_id = sessions.error_or_session(session=(1, 1), by_topic_id=True)
    assert by_id is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert sessions.ask(session=(1, 1)).id == 1


def test_a_session_with_nothing_left_ends(sessions: Sessions) -> None:
    sessions.begin(("a", 0))
    left = sessions.ask(session=(1, 1), forget=(("a", 0),))
    assert (left.id, left.goes_on, len(left), len(sessions)) == (0, False, 0, 0)


# ---- what is due


def test_only_what_was_named_is_due(sessions: Sessions) -> None:
    session = sessions.begin(("a", 0), ("b", 0), ("c", 0))
    assert due(session) == []
    sessions.ask(("c", 0), ("b", 0), ("d", 0), session=(1, 1), forget=(("a", 0), ("b", 0), ("none", 0)))
    assert due(session) == ["c", "d"]


def test_records_behind_an_error_and_a_divergence_stay_due(sessions: Sessions) -> None:
    session = sessions.ask(("a", 0), ("b", 0), ("c", 0), ("d", 0), session=(0, 0))
    answers = (data(1), ERROR, data(diverging_epoch=EpochEndOffset(epoch=0, end_offset=0)), data(1))
    for cached, answer, is_behind in zip(session.due(), answers, (True, False, False, False), strict=True):
        session.answered(cached, answer, is_behind)
    assert due(session) == ["a", "b", "c"]


def test_another_isolation_level_makes_all_due(sessions: Sessions) -> None:
    session = sessions.begin(("a", 0), ("b", 0))
    sessions.ask(session=(1, 1), isolation_level=1)
    assert due(session) == ["a", "b"]


@pytest.mark.parametrize(
    ("answers", "is_told"),
    [
        ((data(5), data(5)), False),
        ((data(5), data(6)), True),
        ((data(5), data(5, b"records")), True),
        ((data(5), data(5, log_start_offset=1)), True),
        ((data(5), ERROR), True),
        ((data(5), ERROR, ERROR), True),
        ((data(5), ERROR, data(5)), True),
        ((data(5), data(5, diverging_epoch=EpochEndOffset(epoch=0, end_offset=3))), True),
        ((data(5), data(5, last_stable_offset=2)), False),
    ],
)
def test_only_what_has_changed_is_told(answers: tuple[PartitionData, ...], is_told: bool) -> None:
    session = FetchSession(by_topic_id=False, now_ms=0)
    session.update(request(("a", 0)))
    (cached,) = session.due()
    session.id = 1
    told = [session.answered(cached, answer, False) for answer in answers]
    assert (told[0], told[-1]) == (True, is_told)


def test_a_partition_that_sent_records_goes_behind_all_others(sessions: Sessions) -> None:
    session = sessions.begin(("a", 0), ("b", 0), ("c", 0))
    everything = [("a", 0), ("b", 0), ("c", 0)]
    for epoch, order in enumerate((["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]), 1):
        sessions.ask(*everything, session=(1, epoch))
        assert due(session) == order
        answer_all(session, **{order[0]: data(epoch, b"records")})


# ---- logs that move


def append(log: MemoryLog, partition_no: int) -> None:
    appended: Deferred[Any] = log.append(partition_no, encode([Record(0, 0, None, b"v")]), now_ms=0)
    assert appended.called


def watched(log: MemoryLog) -> list[int]:
    return sorted(log._watchers._callbacks)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def session(sessions: Sessions, log: MemoryLog) -> FetchSession:
    """A session on topics a, b, c with logs 1, 2, 3; all are read to their ends, and watched."""
    session = sessions.ask(("a", 0), ("b", 0), ("c", 0), session=(0, 0))
    for partition_no, cached in enumerate(session.due(), 1):
        cached.partition_no = partition_no
    session.watch(log)
    answer_all(session)
    sessions.keep(session, SLOTS, 0)
    return session


def test_a_log_that_moves_is_due_and_not_watched_until_it_was_looked_at(
    session: FetchSession, log: MemoryLog
) -> None:
    append(log, 2)
    assert (due(session), watched(log)) == (["b"], [1, 3])
    session.watch(log)
    answer_all(session)
    assert (due(session), watched(log)) == ([], [1, 2, 3])


def test_a_parked_fetch_hears_of_each_move(session: FetchSession, log: MemoryLog) -> None:
    moved: list[CachedPartition] = []
    session.park(log, moved.append, lambda: None)
    append(log, 2)
    append(log, 2)
    append(log, 3)
    assert [cached.topic.name for cached in moved] == ["b", "b", "c"]
    session.unpark()
    append(log, 1)
    assert len(moved) == 3


def test_nothing_is_watched_for_a_session_that_ended(
    sessions: Sessions, session: FetchSession, log: MemoryLog
) -> None:
    finished: list[str] = []
    session.park(log, lambda _: None, lambda: finished.append("finished"))
    sessions.ask(session=(1, -1))
    assert (watched(log), finished) == ([], ["finished"])
    session.watch(log)
    assert watched(log) == []


def test_what_is_forgotten_is_not_watched(sessions: Sessions, session: FetchSession, log: MemoryLog) -> None:
    sessions.ask(session=(1, 1), forget=(("b", 0),))
    assert watched(log) == [1, 3]


def test_a_partition_follows_its_log(session: FetchSession, log: MemoryLog) -> None:
    """A topic of the same name was created again."""
    log.delete(2)
    (cached,) = session.due()
    cached.partition_no = 7
    session.watch(log)
    assert watched(log) == [1, 3, 7]


def test_a_parked_fetch_gives_way_to_the_next(session: FetchSession, log: MemoryLog) -> None:
    finished: list[str] = []
    session.park(log, lambda _: None, lambda: finished.append("first"))
    session.park(log, lambda _: None, lambda: finished.append("second"))
    assert finished == ["first"]


# ---- room


def test_without_slots_there_are_no_sessions() -> None:
    sessions = Sessions(slots=0)
    assert (sessions.begin(("a", 0)).id, len(sessions)) == (0, 0)


def test_the_one_not_used_for_two_minutes_goes_first(sessions: Sessions) -> None:
    for name in "abc":
        sessions.begin((name, 0))
    sessions.now_ms = MINUTE_MS
    sessions.ask(session=(1, 1))
    assert sessions.begin(("d", 0)).id == 0
    sessions.now_ms = 2 * MINUTE_MS + 1
    assert sessions.begin(("d", 0)).id == 4
    assert sessions.error_or_session(session=(2, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.ask(session=(1, 2)).id == 1


def test_a_larger_session_takes_the_place_of_a_smaller_one_that_is_no_longer_new(sessions: Sessions) -> None:
    many = [("a", index) for index in range(9)]
    for size in (3, 2, 4):
        sessions.begin(*many[:size])
    for epoch, minute in enumerate((1, 2, 3), 1):
        sessions.now_ms = minute * MINUTE_MS
        for id in (1, 2, 3):
            sessions.ask(session=(id, epoch))
    assert sessions.begin(*many[:2]).id == 0
    assert sessions.begin(*many[:3]).id == 4
    assert sessions.error_or_session(session=(2, 4)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == SLOTS


def test_partitions_in_all_are_bounded(monkeypatch: pytest.MonkeyPatch, sessions: Sessions) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_CACHED_PARTITIONS", 5)
    many = [("a", index) for index in range(9)]
    assert sessions.begin(*many[:3]).id == 1
    assert sessions.begin(*many[:3]).id == 0
    assert sessions.begin(*many[:2]).id == 2
    grown = sessions.error_or_session(*many, session=(1, 1))
    assert (grown, len(sessions)) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 1)
    assert sessions.begin(*many[:3]).id == 3


def test_an_id_is_not_given_twice() -> None:
    ids = iter((7, 7, 9))
    new_id: Callable[[], int] = ids.__next__
    sessions = FetchSessions(new_id)
    kept = [FetchSession(False, 0), FetchSession(False, 0)]
    for session in kept:
        sessions.keep(session, SLOTS, 0)
    assert [session.id for session in kept] == [7, 9]


def test_by_topic_id_the_id_is_the_place() -> None:
    session = FetchSession(by_topic_id=True, now_ms=0)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = tuple(
        FetchTopic(topic="", topic_id=UUID(int=number), partitions=(wanted,)) for number in (1, 2, 1)
    )
    session.update(FetchRequest(max_wait_ms=0, min_bytes=1, isolation_level=0, topics=topics))
    assert [cached.topic.topic_id.int for cached in session.due()] == [1, 2]


# ---- what is not kept


def test_fields_that_are_not_known_are_not_kept() -> None:
    sessions = Sessions()
    asked = request(("t", 0))
    (topic,) = asked.topics
    tagged = replace(topic.partitions[0], unknown_tags=((77, b"x"),))
    session = sessions.open(replace(asked, topics=(replace(topic, partitions=(tagged,)),)), False, 0)
    assert isinstance(session, FetchSession)
    assert [cached.wanted for cached in session.partitions()] == [topic.partitions[0]]


def test_a_session_with_a_name_that_no_topic_has_is_not_kept() -> None:
    sessions = Sessions()
    assert sessions.begin(("x" * 250, 0)).id == 0
    kept = sessions.begin(("x" * 249, 0))
    assert kept.id != 0
    later = sessions.error_or_session(("x" * 250, 0), session=(kept.id, 1))
    assert later is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0
