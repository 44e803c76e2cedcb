"""Deadlines as data: what is due when, without a clock.

To move a timer to a later time, as every heartbeat does, costs one dictionary write: the entry already in the
heap is looked at when its old time comes and put back at the new one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import count
from typing import NamedTuple

STALE_CHARACTERS = 2_000_000
"""How many characters the member ids of cancelled timers may have, beside as many as those of live ones."""


class TimerKind(IntEnum):
    """What a timer watches."""

    MEMBER = 0
    """A member's session, or how long an id handed out with MEMBER_ID_REQUIRED stays valid."""
    JOIN = 1
    """The join phase of a group."""
    SYNC = 2
    """The sync phase of a group."""
    HEARTBEAT = 3
    """How long a member's heartbeat stays parked."""


class TimerKey(NamedTuple):
    """Names one timer; arming a key again replaces its deadline."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class ShardTimer(NamedTuple):
    """Names a shard's timer for expiry runs."""

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
        """Of the member ids in the heap; clients choose how long they are."""
        self._most_characters = STALE_CHARACTERS

    def arm(self, key: AnyTimer, deadline_ms: int) -> None:
        """Let `key` come due at `deadline_ms`, instead of any deadline it had."""
        self._deadlines_ms[key] = deadline_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(key, deadline_ms)

    def cancel(self, key: AnyTimer) -> None:
        """Forget `key`; nothing happens when it is not armed."""
        self._deadlines_ms.pop(key, None)

    def deadline_ms(self, key: AnyTimer) -> int | None:
        """When `key` is due; None when it is not armed."""
        return self._deadlines_ms.get(key)

    def next_deadline_ms(self) -> int | None:
        """The time at which to call `due`. It may be early (a timer moved since), never late."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[AnyTimer]:
        """The keys whose deadline is not after `now_ms`, earliest first; each is disarmed as it comes out.

        A timer armed or cancelled while the iterator is being read is seen as it then stands.
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
        """The keys of which `is_wanted(key, deadline_ms)` is true, whenever they are due; each is disarmed as
        it comes out. O(timers).
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
