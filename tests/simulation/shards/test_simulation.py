"""A few histories; `python -m tests.simulation.shards --histories N` runs any number."""

from __future__ import annotations

import pytest

from tests.simulation.outcome import total
from tests.simulation.shards.node import Node
from tests.simulation.shards.run import run
from tests.simulation.shards.world import World

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_histories(first: int) -> None:
    outcomes = [run(seed) for seed in range(first, first + 10)]
    for outcome in outcomes:
        outcome.check()
    assert total(outcomes, "acknowledged") > 250
    assert total(outcomes, "reads") > 250
    assert total(outcomes, "takeovers") > 80
    assert total(outcomes, "crashes") > 10


@pytest.mark.parametrize("seed", range(10))
def test_whoever_wakes_up_answers_nothing_old(seed: int) -> None:
    """Another one leads by then, and requests have been waiting for it to wake up."""
    world = World(seed)
    asleep, awake, _ = world.nodes
    asleep.assign(True)
    world.run(2_000)
    world.commit()
    world.run(50)
    asleep.wakes_ms = world.clock.now_ms + 8_000
    awake.assign(True)
    world.run(3_000)
    commit_and_read(world, awake, asleep)
    world.run(10_000)
    world.judge()


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_answered_while_the_one_before_may_answer(seed: int) -> None:
    """It does not know that another one is to lead."""
    world = World(seed)
    before, after, _ = world.nodes
    before.assign(True)
    world.run(2_000)
    world.commit()
    world.run(50)
    after.assign(True)
    while after.tenure is None:
        world.run(1)
    commit_and_read(world, after, before)
    world.run(10_000)
    world.judge()


def commit_and_read(world: World, leader: Node, other: Node) -> None:
    """Commit at one node until that is acknowledged, then read at the other."""
    acknowledged = world.acknowledged
    while world.acknowledged == acknowledged:
        world.commit(leader)
        world.run(2)
    for _ in range(8):
        world.read(other)
        world.run(2)


def test_a_seed_is_a_whole_history() -> None:
    assert run(42, tell=True) == run(42, tell=True)
