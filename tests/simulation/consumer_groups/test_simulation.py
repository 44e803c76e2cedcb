"""A few histories; `python -m tests.simulation.consumer_groups --histories N` runs any number."""

from __future__ import annotations

import pytest

from kshim.coordination.groups.consumer import computing, releasing
from tests.simulation.consumer_groups.run import run
from tests.simulation.outcome import total

ONCE_FAILED = ((203053, False), (1026133, True), (2007820, True))
"""Seeds that fail without a fix that they have led to, and whether members commit."""

pytestmark = pytest.mark.thorough


def test_histories_reach_the_rare_cases() -> None:
    outcomes = [run(seed) for seed in range(200)]
    for outcome in outcomes:
        outcome.check()
    for kind in (
        "crashes",
        "fenced",
        "repeated",
        "group_id_not_found",
        "unreleased_instance_id",
        "refused commits",
    ):
        assert total(outcomes, kind) > 10, kind


@pytest.mark.parametrize(("seed", "commits"), ONCE_FAILED)
def test_seeds_that_once_failed(seed: int, commits: bool) -> None:
    run(seed, commits=commits).check()


def test_targets_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a target is a slice, and one member is looked at a time."""
    monkeypatch.setattr(computing, "MOST_STEPS", 1)
    monkeypatch.setattr(releasing, "MOST_WORK", 1)
    for seed in range(100):
        run(seed).check()


def test_a_seed_is_a_whole_history() -> None:
    assert run(42, tell=True) == run(42, tell=True)
