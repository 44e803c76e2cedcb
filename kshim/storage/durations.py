"""A histogram of durations. One thread adds to it while another one may read it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

BOUNDS_S: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Bounds that fit both a heartbeat that is answered at once and a rebalance that waits for a member."""


class Measured(NamedTuple):
    """The durations that were counted so far."""

    counts: Sequence[int]
    """The number of durations up to each bound; the last item is the number of all durations."""
    sum_s: float


class Durations:
    """Counts durations in the ranges between `bounds_s`."""

    __slots__ = ("_counts", "_sum_s", "bounds_s")

    def __init__(self, bounds_s: Sequence[float] = BOUNDS_S) -> None:
        self.bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self._sum_s = 0.0

    def add(self, duration_s: float, times: int = 1) -> None:
        """Count a duration `times` times."""
        self._counts[bisect_left(self.bounds_s, duration_s)] += times
        self._sum_s += times * duration_s

    def measured(self) -> Measured:
        """The durations that were counted so far."""
        return Measured(tuple(accumulate(self._counts)), self._sum_s)
