"""Shares the one thread among connections and requests that have more to do than fits into one round.

A round takes about ROUND_S. Connections are read while it lasts. A connection with further requests, and a
request that is answered in slices, stand in line for the next round, so each of them delays the others by a
slice at most, however much it has to do. A connection that has used no share of its own yet goes first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred

from kshim.storage.clock import Clock

R = TypeVar("R")

ROUND_S = 0.01
SHARE_S = 0.002
"""A connection that has computed for as long has used its share of a round."""
CROWD = 8
CROWDED_SHARE_S = 0.000_25
"""The share while more than CROWD connections that have used none yet stand in line. The last of them waits
for the shares of all others."""


class Rounds:
    """The round that is under way, and the line for the next ones."""

    __slots__ = ("_busy", "_clock", "_fresh", "_is_due", "share_s", "used_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fresh: deque[Callable[[], object]] = deque()
        self._busy: deque[Callable[[], object]] = deque()
        self._is_due = False
        self.share_s = SHARE_S
        """How long a connection may compute until it has used its share."""
        self.used_s = 0.0
        """How much of this round is used. A connection adds its time, and calls `end` beyond ROUND_S."""

    def end(self) -> None:
        """Begin the next round soon, because this one is used up."""
        self._begin_later()

    async def run(self, function: Callable[[], R]) -> R:
        """Call `function()`, which may take a part of the round: now, or if this round is used up, in a later
        one.
        """
        if self.used_s >= ROUND_S:
            await self.next()
        began_s = self._clock.seconds()
        try:
            return function()
        finally:
            self.used_s += self._clock.seconds() - began_s
            if self.used_s >= ROUND_S:
                self.end()

    def stand_in_line(self, go_on: Callable[[], object], *, is_fresh: bool) -> None:
        """Have `go_on()` called in one of the next rounds. is_fresh: before all that are not."""
        (self._fresh if is_fresh else self._busy).append(go_on)
        if len(self._fresh) > CROWD:
            self.share_s = CROWDED_SHARE_S
        self._begin_later()

    def next(self) -> Deferred[None]:
        """Fires when it is a request's turn again."""
        turn: Deferred[None] = Deferred()
        self.stand_in_line(lambda: turn.callback(None), is_fresh=False)
        return turn

    def _begin_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._clock.callLater(0, self._begin)

    def _begin(self) -> None:
        """Take turns, each of those that stand in line once at most."""
        self._is_due = False
        self.used_s = 0.0
        began_s = self._clock.seconds()
        fresh, busy = len(self._fresh), len(self._busy)
        for _ in range(fresh):
            if self.used_s >= ROUND_S:
                break
            self._fresh.popleft()()
            self.used_s = self._clock.seconds() - began_s
        for number in range(busy):
            if number and self.used_s >= ROUND_S:
                break
            self._busy.popleft()()
            self.used_s = self._clock.seconds() - began_s
        if len(self._fresh) <= CROWD:
            self.share_s = SHARE_S
        if self._fresh or self._busy or self.used_s >= ROUND_S:
            self._begin_later()
