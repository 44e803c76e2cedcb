"""A few histories; `python -m tests.simulation.upstream --histories N` runs any number."""

from __future__ import annotations

import pytest

from tests.simulation.upstream.run import run

pytestmark = pytest.mark.thorough
ONCE_FAILED = (22, 116, 5019)


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_histories(first: int) -> None:
    outcomes = [run(seed) for seed in range(first, first + 5)]
    for outcome in outcomes:
        if outcome.error is not None:
            raise AssertionError("\n".join((f"seed {outcome.seed}", *outcome.happened))) from outcome.error
    assert sum(outcome.committed for outcome in outcomes) > 20
    assert sum(outcome.reads for outcome in outcomes) > 100


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_what_once_failed(seed: int) -> None:
    assert run(seed).error is None


def test_a_seed_is_a_whole_history() -> None:
    assert run(42, tell=True) == run(42, tell=True)
