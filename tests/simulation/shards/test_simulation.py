"""A few histories; `python -m tests.simulation.shards --histories N` runs any number."""

from __future__ import annotations

import pytest

from tests.simulation.shards.run import Outcome, run

pytestmark = pytest.mark.thorough


def is_well(outcome: Outcome) -> None:
    if outcome.error is not None:
        raise AssertionError("\n".join((f"seed {outcome.seed}", *outcome.happened))) from outcome.error


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_histories(first: int) -> None:
    outcomes = [run(seed) for seed in range(first, first + 10)]
    for outcome in outcomes:
        is_well(outcome)
    assert sum(outcome.acknowledged for outcome in outcomes) > 250
    assert sum(outcome.reads for outcome in outcomes) > 250
    assert sum(outcome.takeovers for outcome in outcomes) > 80
    assert sum(outcome.crashes for outcome in outcomes) > 10


def test_a_seed_is_a_whole_history() -> None:
    assert run(42, tell=True) == run(42, tell=True)
