"""A few histories; `python -m tests.simulation.groups --histories N` runs any number."""

from __future__ import annotations

import pytest

from schemas.error_code import ErrorCode
from tests.simulation.groups.run import run
from tests.simulation.outcome import total

pytestmark = pytest.mark.thorough

ONCE_FAILED = (83, 168, 226, 270, 306, 3175)
"""Seeds that once found a fault."""


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_histories(first: int) -> None:
    for seed in range(first, first + 50):
        run(seed).check()


@pytest.mark.parametrize("seed", range(2))
def test_long_histories(seed: int) -> None:
    run(seed, 2_000).check()


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_seeds_that_once_failed(seed: int) -> None:
    run(seed, parks=False).check()


def test_a_seed_is_a_whole_history() -> None:
    once, again = run(42, tell=True), run(42, tell=True)
    assert once.happened == again.happened
    assert once == again


def test_histories_reach_the_rare_cases() -> None:
    """Groups form, move and fail, and requests are refused with every error that they can get."""
    seeds = (*range(60), 62, 118)  # 62 asks while a shard loads, 118 fences a coordinator
    outcomes = [run(seed, tell=True) for seed in seeds]
    assert total(outcomes, "rebalances") > 500
    assert total(outcomes, "broker_crashes") > 20
    assert total(outcomes, "shard_moves") > 20
    assert total(outcomes, "failed_appends") > 40
    said = "\n".join(line for outcome in outcomes for line in outcome.happened)
    for error in (
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ):
        assert error.name in said, error.name
    assert "skip_assignment=True" in said
