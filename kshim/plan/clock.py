"""Virtual time: a queue of future events, one after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Call:
    """A future event, unless it is cancelled."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], object]) -> None:
        self.function: Callable[[], object] | None = function

    def cancel(self) -> None:
        """Make it never happen."""
        self.function = None


class VirtualClock:
    """Time moves only in `run_until`, from one event to the next."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._queue: list[tuple[int, int, Call]] = []
        self._order = 0

    def after(self, delay_ms: int, function: Callable[[], object]) -> Call:
        """Call in `delay_ms`; calls for the same time are made in the order in which they were asked for."""
        call = Call(function)
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + max(delay_ms, 0), self._order, call))
        return call

    def run_until(self, at_ms: int) -> None:
        """Make all calls up to `at_ms`, which is the time afterwards."""
        while self._queue and self._queue[0][0] <= at_ms:
            self.now_ms, _, call = heapq.heappop(self._queue)
            if call.function is not None:
                call.function()
        self.now_ms = at_ms
