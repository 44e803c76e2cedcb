"""How long things take: a histogram, to which one thread adds while another one may read it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

BOUNDS_S: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""From a heartbeat that is answered at once to a rebalance that waits for a member."""


class Measured(NamedTuple):
    """All durations so far."""

    counts: Sequence[int]
    """How many were at most as long as each of the bounds; the last one is of all."""
    sum_s: float


class Durations:
    """Counts durations between `bounds_s`."""

    __slots__ = ("_counts", "_sum_s", "bounds_s")

    def __init__(self, bounds_s: Sequence[float] = BOUNDS_S) -> None:
        self.bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self._sum_s = 0.0

    def add(self, duration_s: float, times: int = 1) -> None:
        """Count a duration, or some that were alike."""
        self._counts[bisect_left(self.bounds_s, duration_s)] += times
        self._sum_s += times * duration_s

    def measured(self) -> Measured:
        """What was counted so far."""
        return Measured(tuple(accumulate(self._counts)), self._sum_s)
