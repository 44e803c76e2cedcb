"""Figures of several rounds become ratios, medians and ranges."""

from __future__ import annotations

import pytest

from benchmarks.comparing import Spread, percentile, ratios, spread
from benchmarks.processor import busiest


def test_a_spread_is_the_median_and_the_range() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert spread([]) is None


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1), (1, 1), (50, 50), (50.5, 51), (95, 95), (99, 99), (100, 100)]
)
def test_a_percentile_is_the_nearest_rank(percent: float, value: float) -> None:
    assert percentile(list(range(100, 0, -1)), percent) == value


def test_a_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 99) == 7.0


def test_of_a_rate_more_is_better() -> None:
    assert ratios("requests/s", [30.0, 10.0], [10.0, 20.0]) == [3.0, 0.5]


@pytest.mark.parametrize("figure", ["p50 ms", "s to listen", "MiB idle", "% of a core"])
def test_of_times_and_of_memory_less_is_better(figure: str) -> None:
    assert ratios(figure, [30.0, 10.0], [10.0, 20.0]) == [1 / 3, 2.0]


def test_a_round_without_a_measurable_figure_has_no_ratio() -> None:
    assert ratios("% of a core", [0.0, 2.0], [3.0, 3.0]) == [1.5]
    assert ratios("% of a core", [1.0], []) == []


def test_the_busiest_thread_counts_and_the_time_that_it_waited_for_a_core_does_not() -> None:
    before = {"1": (10.0, 1.0)}
    after = {"1": (11.0, 3.0), "2": (1.5, 0.0)}
    assert busiest(before, after, 4.0) == 0.5  # 1 s of the 2 s in which it could run; the other 1.5 s of 4 s
    assert busiest({}, {}, 4.0) == 0.0
