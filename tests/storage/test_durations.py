"""Durations are counted between bounds."""

from __future__ import annotations

from kshim.storage.durations import Durations


def test_durations_are_counted_up_to_each_bound() -> None:
    durations = Durations((0.1, 1.0))
    for duration_s in (0.05, 0.1, 0.5, 2.0):
        durations.add(duration_s)
    assert durations.measured() == ((2, 3, 4), 2.65)


def test_durations_that_are_alike_are_counted_together() -> None:
    durations = Durations((0.1, 1.0))
    durations.add(0.5, 3)
    durations.add(0.5, 0)
    assert durations.measured() == ((0, 3, 3), 1.5)
