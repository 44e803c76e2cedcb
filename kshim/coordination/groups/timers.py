"""Deadlines as data, without a clock.

Moving a timer to a later time, as every heartbeat does, costs one dictionary write: its entry stays in the
heap until the old time comes, and is then put back with the new time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import count
from typing import NamedTuple

STALE_CHARACTERS = 2_000_000
"""The heap may hold twice as many characters of member ids as live timers have, and this many more. Beyond
that, cancelled timers are removed.
"""


class TimerKind(IntEnum):
    """The kinds of timers of groups."""

    MEMBER = 0
    """The end of a member's session, or of the validity of an id handed out with MEMBER_ID_REQUIRED."""
    JOIN = 1
    """The end of a group's join phase."""
    SYNC = 2
    """The end of a group's sync phase."""
    HEARTBEAT = 3
    """The answer to a member's parked heartbeat."""
    SESSION = 4
    """The end of the session of a consumer group's member."""
    REVOCATION = 5
    """The end of the time in which a consumer group's member has to give up partitions."""
    REJOIN = 6
    """The end of the time in which a classic member of a consumer group has to join again."""
    RESYNC = 7
    """The end of the time in which a classic member of a consumer group has to send SyncGroup."""
    REGEX = 8
    """A search of the topics for those that a consumer group's expressions match."""
    TARGET = 9
    """The computation of a consumer group's target."""
    WAIT = 10
    """The answer to a parked heartbeat of a consumer group's member."""
    LOOK = 11
    """A look at members of a consumer group that may have to hear something."""


OF_CONSUMER_GROUPS = frozenset(kind for kind in TimerKind if kind >= TimerKind.SESSION)
"""The kinds of timers of consumer groups. The others are of classic groups."""


class TimerKey(NamedTuple):
    """The key of one timer; arming a key again replaces its deadline."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class ShardTimer(NamedTuple):
    """The key of a shard's timer for expiry runs."""

    shard: int

    @property
    def member_id(self) -> str:
        return ""


AnyTimer = TimerKey | ShardTimer


class Timers:
    """All deadlines of a coordinator, in ms of the time that its callers pass in."""

    __slots__ = ("_deadlines_ms", "_heap", "_most_characters", "_order", "_queued_ms", "characters")

    def __init__(self) -> None:
        self._deadlines_ms: dict[AnyTimer, int] = {}
        self._queued_ms: dict[AnyTimer, int] = {}
        self._heap: list[tuple[int, int, AnyTimer]] = []
        self._order = count()
        self.characters = 0
        """How many characters the member ids in the heap have; clients choose how long they are."""
        self._most_characters = STALE_CHARACTERS

    def arm(self, key: AnyTimer, deadline_ms: int) -> None:
        """Make `key` due at `deadline_ms`, in place of any deadline that it had."""
        self._deadlines_ms[key] = deadline_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(key, deadline_ms)

    def cancel(self, key: AnyTimer) -> None:
        """Disarm `key`; nothing happens if it is not armed."""
        self._deadlines_ms.pop(key, None)

    def postpone(self, key: AnyTimer, by_ms: int) -> None:
        """Make `key` due later by `by_ms`, if it is armed."""
        deadline_ms = self._deadlines_ms.get(key)
        if deadline_ms is not None:
            self.arm(key, deadline_ms + by_ms)

    def deadline_ms(self, key: AnyTimer) -> int | None:
        """When `key` is due; None if it is not armed."""
        return self._deadlines_ms.get(key)

    def next_deadline_ms(self) -> int | None:
        """When to call `due`: perhaps too early (a timer was moved), never too late. None without timers."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[AnyTimer]:
        """Yield the keys whose deadline is not after `now_ms`, the earliest first; each is disarmed when it
        is yielded.

        Timers may be armed and cancelled between two keys; the iterator takes that into account.
        """
        while self._heap and self._heap[0][0] <= now_ms:
            queued_ms, _, key = heapq.heappop(self._heap)
            self.characters -= len(key.member_id)
            if self._queued_ms.get(key) != queued_ms:
                continue
            del self._queued_ms[key]
            deadline_ms = self._deadlines_ms.get(key)
            if deadline_ms is None:
                continue
            if deadline_ms > queued_ms:
                self._push(key, deadline_ms)
                continue
            del self._deadlines_ms[key]
            yield key

    def take(self, is_wanted: Callable[[AnyTimer, int], bool]) -> Iterator[AnyTimer]:
        """Yield the keys for which `is_wanted(key, deadline_ms)` is true, due or not; each is disarmed when
        it is yielded. O(timers).
        """
        for key in [key for key, deadline_ms in self._deadlines_ms.items() if is_wanted(key, deadline_ms)]:
            if self._deadlines_ms.pop(key, None) is not None:
                yield key

    def _push(self, key: AnyTimer, deadline_ms: int) -> None:
        if len(self._heap) > 2 * len(self._deadlines_ms) + 64 or self.characters > self._most_characters:
            self._forget_cancelled()
        self.characters += len(key.member_id)
        self._queued_ms[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, next(self._order), key))

    def _forget_cancelled(self) -> None:
        """Rebuild the heap from the live deadlines, so that cancelled timers do not pile up in it."""
        self._queued_ms = dict(self._deadlines_ms)
        self._heap = [(deadline_ms, next(self._order), key) for key, deadline_ms in self._queued_ms.items()]
        heapq.heapify(self._heap)
        self.characters = sum(len(key.member_id) for key in self._queued_ms)
        self._most_characters = 2 * self.characters + STALE_CHARACTERS
