"""Simulated time: a queue of future events, one after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

START_MS = 1_700_000_000_000
ROUNDING_S = 0.0001
"""Added to times in seconds, so that they do not round down to the millisecond before."""


class Call:
    """A future event, unless it is cancelled."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.function: Callable[..., object] | None = function
        self.arguments = arguments

    def cancel(self) -> None:
        self.function = None


class SimulatedClock:
    """Serves as the runtime's clock; time moves only in `step`."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self._queue: list[tuple[int, int, Call]] = []
        self._order = 0

    def seconds(self) -> float:
        return self.now_ms / 1000 + ROUNDING_S

    def callLater(self, delay: float, function: Callable[..., object], *arguments: Any) -> Call:
        """Like Twisted's, in seconds; rounded up to whole milliseconds, because it must not come early."""
        return self.after(-int(-delay * 1000 // 1), function, *arguments)

    def after(self, delay_ms: int, function: Callable[..., object], *arguments: Any) -> Call:
        """Call in `delay_ms`; calls for the same time are made in the order in which they were scheduled."""
        call = Call(function, arguments)
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._order, call))
        return call

    def step(self) -> bool:
        """Make the next call; False if there is none."""
        while self._queue:
            due_ms, _, call = heapq.heappop(self._queue)
            if call.function is not None:
                self.now_ms = max(self.now_ms, due_ms)
                call.function(*call.arguments)
                return True
        return False
