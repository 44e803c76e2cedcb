"""The member ids that were handed out with MEMBER_ID_REQUIRED, and have not come back yet, of all groups.

A client chooses how long its id is, as its client id is part of it, and how long it stays valid. So the ids
are counted in bytes, and the oldest are given up first. An honest client is back after a round trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import getsizeof

from kshim.coordination.groups.timers import TimerKey, TimerKind

MOST_BYTES = 16 * 1024 * 1024
ENTRY_BYTES = 700
"""About what an id takes in the tables of its group and of the timers, without its text."""


def timer_of(group_id: str, member_id: str) -> TimerKey:
    """The timer at whose end the id is given up."""
    return TimerKey(TimerKind.MEMBER, group_id, member_id)


class PendingIds:
    """Counts them, by their timers. Soft state, shared by all shards."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._timers: dict[TimerKey, None] = {}
        """The earliest first."""
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._timers)

    def add(self, timer: TimerKey) -> Iterator[TimerKey]:
        """Count an id; return the timers of those that are to be given up for it."""
        self._timers[timer] = None
        self.bytes += _size(timer)
        while self.bytes > self._most_bytes:
            oldest = next(iter(self._timers))
            self._forget(oldest)
            yield oldest

    def remove(self, group_id: str, member_id: str) -> None:
        """Count an id no more, if it is counted: its client has come back, or will not."""
        timer = timer_of(group_id, member_id)
        if timer in self._timers:
            self._forget(timer)

    def _forget(self, timer: TimerKey) -> None:
        del self._timers[timer]
        self.bytes -= _size(timer)


def _size(timer: TimerKey) -> int:
    return ENTRY_BYTES + getsizeof(timer.member_id)
