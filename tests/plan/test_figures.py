"""What the ledger notes, and the figures that are made of it."""

from __future__ import annotations

from kshim.plan.figures import figures, happened, percentile, unowned_steps
from kshim.plan.ledger import Ledger, Span


def _ledger() -> Ledger:
    """Two partitions of a, of which b takes over one after 50 ms. c has none for 30 ms."""
    ledger = Ledger(2)
    ledger.starts("a", 0)
    ledger.gains("a", (0, 1), 10)
    ledger.starts("b", 20)
    ledger.loses("a", (1,), 100)
    ledger.gains("b", (1,), 150)
    return ledger


def test_a_partition_has_no_owner_between_two() -> None:
    assert _ledger().unowned(10, 200) == [Span(100, 150)]
    assert _ledger().unowned(120, 140) == [Span(120, 140)]


def test_a_partition_that_nobody_takes_over_has_no_owner_up_to_the_end() -> None:
    ledger = _ledger()
    ledger.ends("b", 160)
    assert ledger.unowned(10, 200) == [Span(100, 150), Span(160, 200)]
    assert not ledger.is_complete


def test_a_partition_with_two_owners_needs_both_to_lose_it() -> None:
    ledger = _ledger()
    ledger.gains("b", (0,), 160)
    ledger.ends("a", 170)
    assert ledger.unowned(160, 200) == []


def test_only_a_partition_that_another_member_takes_over_has_moved() -> None:
    ledger = _ledger()
    assert ledger.moves(0) == 1
    ledger.loses("b", (1,), 160)
    ledger.gains("b", (1,), 170)
    assert ledger.moves(0) == 1
    assert ledger.moves(151) == 0


def test_a_member_pauses_while_it_has_no_partition() -> None:
    ledger = _ledger()
    assert ledger.paused(0, 200) == [Span(0, 10), Span(20, 150)]
    ledger.loses("b", (1,), 160)
    ledger.ends("b", 170)
    ledger.starts("b", 180)
    ledger.gains("b", (1,), 190)
    assert ledger.paused(151, 200) == [Span(180, 190)]


def test_figures_of_a_time() -> None:
    run = happened(_ledger(), 3, 50, 250)
    assert run.unowned == (Span(50, 100),)
    it = figures([run], 2, 200)
    assert (it.rebalances, it.moves, it.unowned_ms, it.partition_pauses) == (3, 1, 50, 1)
    assert it.unowned_share == 50 / 400
    assert (it.partition_p50_ms, it.partition_longest_ms, it.member_p50_ms) == (50, 50, 130)


def test_figures_of_two_times_are_means() -> None:
    runs = [happened(_ledger(), 3, 50, 250), happened(_ledger(), 0, 50, 130)]
    it = figures(runs, 2, 100)
    assert (it.rebalances, it.moves, it.unowned_ms) == (1.5, 1, 40)
    assert (it.partition_p50_ms, it.partition_longest_ms) == (30, 50)


def test_percentiles() -> None:
    values = list(range(1, 101))
    assert [percentile(values, percent) for percent in (50, 99, 100)] == [50, 99, 100]
    assert percentile([7], 50) == 7
    assert percentile([], 99) == 0


def test_steps_count_the_partitions_without_an_owner() -> None:
    assert unowned_steps([Span(5, 9), Span(7, 12)]) == [(5, 1), (7, 2), (9, 1), (12, 0)]
