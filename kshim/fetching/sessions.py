"""Fetch sessions (KIP-227): the server remembers what a client fetches, so its requests name only changes.

A partition of a session is *due* if the next answer may have to include it: the client has changed its
request for it, there are more records after its position, its last answer was an error, or its log has moved
since. A request reads only due partitions. The others are watched, so a thousand quiet partitions cost a
request nothing.

A request without a session gets a session that is not kept. `reads` reads the partitions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING
from uuid import UUID

from kshim.cluster.names import MAX_NAME_LENGTH
from schemas.error_code import ErrorCode
from schemas.message import without_unknown_tags
from schemas.messages.fetch import FetchPartition, FetchRequest, PartitionData

if TYPE_CHECKING:
    from kshim.storage.interfaces import Log

NO_SESSION = 0
FULL, FINAL = 0, -1  # epochs of requests that name all partitions: FULL begins a session, FINAL has none
MAX_INT32 = 2**31 - 1
EVICTION_MS = 2 * 60 * 1000  # Kafka's min.incremental.fetch.session.eviction.ms
MAX_CACHED_PARTITIONS = 100_000
"""Most partitions in all sessions together. Each takes some 900 bytes. Beyond this, a client gets no session,
and names all partitions each time.
"""

Key = tuple[str | UUID, int]


class CachedTopic:
    """A topic as a request named it: by name or id."""

    __slots__ = ("name", "topic_id")

    def __init__(self, name: str | None, topic_id: UUID) -> None:
        self.name = name
        """The topic's name; None while no topic has the requested id."""
        self.topic_id = topic_id

    def is_same(self, other: CachedTopic) -> bool:
        return self is other or (self.name == other.name and self.topic_id == other.topic_id)


class CachedPartition:
    """A partition of a session: the client's last request for it, and the last answer."""

    __slots__ = (
        "_unwatch",
        "_watched",
        "end_seen",
        "high_watermark",
        "log_start_offset",
        "partition_no",
        "topic",
        "turn",
        "wanted",
    )

    def __init__(self, topic: CachedTopic, wanted: FetchPartition, turn: int) -> None:
        self.topic = topic
        self.wanted = wanted
        self.turn = turn
        """The partition with the smallest turn is read first."""
        self.high_watermark = self.log_start_offset = -1
        """Both as in the last answer; -1 before the first."""
        self.end_seen = -1
        """The high watermark when the partition was last read."""
        self.partition_no: int | None = None
        """None while the partition has no log."""
        self._watched: int | None = None
        self._unwatch: Callable[[], None] | None = None

    def watch(self, log: Log, moved: Callable[[CachedPartition], None]) -> None:
        """Call `moved` with this partition when its log moves."""
        if self._watched != self.partition_no:
            self.unwatch()
            if self.partition_no is not None:
                self._watched = self.partition_no
                self._unwatch = log.watch(self.partition_no, partial(moved, self))

    def unwatch(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._watched = self._unwatch = None

    def is_news(self, data: PartitionData) -> bool:
        """True if the client of a session must get this answer.

        Kafka's rule: it must get records, errors, and any change of the high watermark or the log start
        offset. The first answer after an error is always news.
        """
        return (
            bool(data.records)
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.error_code != ErrorCode.NONE
            or data.diverging_epoch.epoch >= 0
        )

    def note(self, data: PartitionData) -> bool:
        """Remember an answer. Return True if it is news."""
        is_new = self.is_news(data)
        self.high_watermark = data.high_watermark if data.error_code == ErrorCode.NONE else -1
        self.log_start_offset = data.log_start_offset
        return is_new


class FetchSession:
    """The partitions that one client fetches."""

    __slots__ = (
        "_due",
        "_is_closed",
        "_is_watching",
        "_isolation_level",
        "_parked",
        "_partitions",
        "_read_with",
        "_turn",
        "by_topic_id",
        "created_ms",
        "epoch",
        "goes_on",
        "has_impossible_names",
        "id",
        "used_ms",
    )

    def __init__(self, by_topic_id: bool, now_ms: int, goes_on: bool = True) -> None:
        self.id = NO_SESSION
        """The session id; NO_SESSION until the session is kept."""
        self.goes_on = goes_on
        """True if a later request may belong to the session."""
        self.epoch = 1
        """The epoch of the next request."""
        self.by_topic_id = by_topic_id
        self.created_ms = self.used_ms = now_ms
        self._partitions: dict[Key, CachedPartition] = {}
        self._due: dict[CachedPartition, None] = {}  # in no order
        self._isolation_level = 0
        self._turn = 0
        self._parked: tuple[Callable[[CachedPartition], None], Callable[[], None]] | None = None
        self._is_watching = self._is_closed = False
        self._read_with: Hashable = None
        self.has_impossible_names = False
        """True if a request named a topic with more letters than a topic can have. Then it is not kept."""

    def __len__(self) -> int:
        return len(self._partitions)

    def partitions(self) -> Collection[CachedPartition]:
        return self._partitions.values()

    def update(self, request: FetchRequest) -> None:
        """Add or change the partitions that the request names."""
        for topic in request.topics:
            place: str | UUID = topic.topic_id if self.by_topic_id else topic.topic
            named = CachedTopic(None if self.by_topic_id else topic.topic, topic.topic_id)
            self.has_impossible_names |= len(topic.topic) > MAX_NAME_LENGTH
            for wanted in map(without_unknown_tags, topic.partitions):
                key = place, wanted.partition
                cached = self._partitions.get(key)
                if cached is None:
                    self._turn += 1
                    cached = self._partitions[key] = CachedPartition(named, wanted, self._turn)
                else:
                    cached.wanted = wanted
                self._due[cached] = None
        if request.isolation_level != self._isolation_level:
            self._isolation_level = request.isolation_level
            self._due.update(dict.fromkeys(self._partitions.values()))

    def forget(self, request: FetchRequest) -> None:
        """Drop the partitions that the request forgets."""
        for topic in request.forgotten_topics_data:
            place: str | UUID = topic.topic_id if self.by_topic_id else topic.topic
            for index in topic.partitions:
                cached = self._partitions.pop((place, index), None)
                if cached is not None:
                    cached.unwatch()
                    self._due.pop(cached, None)

    def read_with(self, rights: Hashable) -> None:
        """Make all partitions due if the rights differ from those of the last request."""
        if rights != self._read_with:
            self._read_with = rights
            self._due.update(dict.fromkeys(self._partitions.values()))

    def due(self) -> list[CachedPartition]:
        """The due partitions, in the order of their turns."""
        return sorted(self._due, key=attrgetter("turn"))

    def answered(self, cached: CachedPartition, data: PartitionData, is_behind: bool) -> bool:
        """Note a partition's answer. Return False if the response may leave it out.

        is_behind: True if there are records from its position on. In a session, a partition whose records are
        sent gets its next turn after all others; the first answer of a session sets the turns.
        """
        is_new = cached.note(data)
        if data.records or self.id == NO_SESSION:
            self._turn += 1
            cached.turn = self._turn
        failed = data.error_code != ErrorCode.NONE or data.diverging_epoch.epoch >= 0
        if not (is_behind or failed):
            self._due.pop(cached, None)
        return is_new or self.id == NO_SESSION

    def failed(self, cached: CachedPartition, data: PartitionData) -> None:
        """Note an error that was put into the answer without reading. The partition stays due, so the next
        answer shows that the error is over.
        """
        cached.note(data)
        self._due[cached] = None

    def watch(self, log: Log) -> None:
        """Watch all due partitions. The others are watched already."""
        self._is_watching = True
        for cached in self._due if not self._is_closed else ():
            cached.watch(log, self._moved)

    def park(self, log: Log, moved: Callable[[CachedPartition], None], finish: Callable[[], None]) -> None:
        """Call `moved` with each partition whose log moves, until `unpark`.

        Call `finish` when the session is closed, or when another request of it is parked.
        """
        if self._parked is not None:
            self._parked[1]()
        self._parked = moved, finish
        self.watch(log)

    def unpark(self) -> None:
        self._parked = None

    def _moved(self, cached: CachedPartition) -> None:
        """Mark a partition as due. Wake the parked Fetch; without one, stop watching until the partition is
        read.
        """
        self._due[cached] = None
        if self._parked is not None:
            self._parked[0](cached)
        else:
            cached.unwatch()

    def close(self) -> None:
        """Stop watching, and finish the parked request."""
        self._is_closed = True
        for cached in self._partitions.values() if self._is_watching else ():
            cached.unwatch()
        if self._parked is not None:
            self._parked[1]()


class FetchSessions:
    """The sessions of one broker (max.incremental.fetch.session.cache.slots), by id."""

    def __init__(self, new_id: Callable[[], int] = lambda: random.randint(1, MAX_INT32)) -> None:
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}  # least recently used first
        self._sizes: dict[int, int] = {}
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions_of(self, session_id: int) -> Collection[CachedPartition]:
        """The partitions of a session; empty if the session does not exist."""
        session = self._sessions.get(session_id)
        return () if session is None else session.partitions()

    def read_with(self, session_id: int, rights: Hashable) -> None:
        """Set the rights under which a session reads from now on. Does nothing if the session is unknown."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.read_with(rights)

    def open(self, request: FetchRequest, by_topic_id: bool, now_ms: int) -> FetchSession | ErrorCode:
        """Return the session of a request, updated by the request, or an error."""
        session = self._sessions.get(request.session_id)
        if request.session_epoch in (FULL, FINAL):
            if session is not None:
                self.remove(session)
            return _new_session(request, by_topic_id, now_ms, request.session_epoch == FULL)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_topic_id != by_topic_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(request)
        session.forget(request)
        self._resize(session)
        if not len(session) or self._partitions > MAX_CACHED_PARTITIONS or session.has_impossible_names:
            self.remove(session)
            if len(session):
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            return _new_session(request, by_topic_id, now_ms, goes_on=False)
        session.epoch = session.epoch % MAX_INT32 + 1
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        return session

    def keep(self, session: FetchSession, slots: int, now_ms: int) -> None:
        """Keep a new session under an id, if there is room or another session may be evicted."""
        if self._partitions + len(session) > MAX_CACHED_PARTITIONS or session.has_impossible_names:
            return
        if len(self._sessions) >= slots:
            evicted = self._evictable(len(session), now_ms)
            if evicted is None:
                return
            self.remove(evicted)
        session.id = self._new_id()
        while session.id in self._sessions:
            session.id = self._new_id()
        session.created_ms = session.used_ms = now_ms
        self._sessions[session.id] = session
        self._resize(session)

    def remove(self, session: FetchSession) -> None:
        del self._sessions[session.id]
        self._partitions -= self._sizes.pop(session.id)
        session.close()

    def _evictable(self, size: int, now_ms: int) -> FetchSession | None:
        """Kafka's rule: evict the least recently used session if it was idle for more than two minutes; else,
        of the sessions that were in use for more than two minutes, the smallest one if it is smaller than the
        new one.
        """
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.used_ms > EVICTION_MS:
            return oldest
        settled: Iterable[FetchSession] = (
            session
            for session in self._sessions.values()
            if session.used_ms - session.created_ms > EVICTION_MS
        )
        smallest = min(settled, key=lambda session: (len(session), session.id), default=None)
        return smallest if smallest is not None and len(smallest) < size else None

    def _resize(self, session: FetchSession) -> None:
        self._partitions += len(session) - self._sizes.get(session.id, 0)
        self._sizes[session.id] = len(session)


def _new_session(request: FetchRequest, by_topic_id: bool, now_ms: int, goes_on: bool) -> FetchSession:
    """Return a session with the partitions that a request names."""
    session = FetchSession(by_topic_id, now_ms, goes_on)
    session.update(request)
    return session
