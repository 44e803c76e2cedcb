"""Simulated time: a queue of what will happen, one thing after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

START_MS = 1_700_000_000_000
ROUNDING_S = 0.0001
"""Seconds are told a tenth of a millisecond late, so that whole milliseconds survive the way through them."""


class Call:
    """Something that will happen, unless it is cancelled before."""

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
        """As Twisted's, in seconds; rounded up to whole milliseconds, for it must not come early."""
        return self.after(-int(-delay * 1000 // 1), function, *arguments)

    def after(self, delay_ms: int, function: Callable[..., object], *arguments: Any) -> Call:
        """Let it happen in `delay_ms`; what is due at the same time happens in the order of these calls."""
        call = Call(function, arguments)
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._order, call))
        return call

    def step(self) -> bool:
        """Let the next thing happen; False when nothing will ever happen again."""
        while self._queue:
            due_ms, _, call = heapq.heappop(self._queue)
            if call.function is not None:
                self.now_ms = max(self.now_ms, due_ms)
                call.function(*call.arguments)
                return True
        return False
