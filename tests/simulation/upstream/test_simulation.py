"""A few histories; `python -m tests.simulation.upstream --histories N` runs any number."""

from __future__ import annotations

import pytest

from tests.simulation.outcome import total
from tests.simulation.upstream.run import run

pytestmark = pytest.mark.thorough
ONCE_FAILED = (22, 116, 5019)


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_histories(first: int) -> None:
    outcomes = [run(seed) for seed in range(first, first + 5)]
    for outcome in outcomes:
        outcome.check()
    assert total(outcomes, "committed") > 20
    assert total(outcomes, "reads") > 100


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_what_once_failed(seed: int) -> None:
    run(seed).check()


def test_a_seed_is_a_whole_history() -> None:
    assert run(42, tell=True) == run(42, tell=True)
