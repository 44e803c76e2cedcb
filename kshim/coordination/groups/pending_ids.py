"""The member ids of all groups that were handed out with MEMBER_ID_REQUIRED and have not come back yet.

A client decides how long such an id is, because its client id is a part of it, and how long the id stays
valid. So the ids are counted in bytes, and the oldest are given up first. An honest client is back after a
round trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import getsizeof

from kshim.coordination.groups.timers import TimerKey, TimerKind

MOST_BYTES = 16 * 1024 * 1024
ENTRY_BYTES = 700
"""About how many bytes an id takes in the tables of its group and of the timers, without its text."""


def timer_of(group_id: str, member_id: str) -> TimerKey:
    """The key of the timer that gives up the id."""
    return TimerKey(TimerKind.MEMBER, group_id, member_id)


class PendingIds:
    """Counts the pending ids, by their timers. Soft state, shared by all shards."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._timers: dict[TimerKey, None] = {}
        """The timers of the pending ids, the oldest id first."""
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._timers)

    def add(self, timer: TimerKey) -> Iterator[TimerKey]:
        """Count an id; yield the timers of the oldest ids, which have to be given up for it. Read it to the
        end.
        """
        self._timers[timer] = None
        self.bytes += _size(timer)
        while self.bytes > self._most_bytes:
            oldest = next(iter(self._timers))
            self._forget(oldest)
            yield oldest

    def remove(self, group_id: str, member_id: str) -> None:
        """Stop counting an id, if it is counted: its client has come back, or the id is given up."""
        timer = timer_of(group_id, member_id)
        if timer in self._timers:
            self._forget(timer)

    def _forget(self, timer: TimerKey) -> None:
        del self._timers[timer]
        self.bytes -= _size(timer)


def _size(timer: TimerKey) -> int:
    return ENTRY_BYTES + getsizeof(timer.member_id)
