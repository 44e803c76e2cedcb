"""One history from its seed: faults for a number of steps, then calm, in which somebody leads."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.shards.world import STEPS, World


@dataclass(frozen=True)
class Outcome:
    """The outcome of one history; `error` is None if nothing was wrong."""

    seed: int
    steps: int
    commits: int
    acknowledged: int
    refused: int
    reads: int
    takeovers: int
    sleeps: int
    crashes: int
    forgotten: int
    error: Exception | None
    happened: tuple[str, ...]
    """The lines of the history, if they were asked for or something was wrong."""


def run(seed: int, steps: int = STEPS, *, tell: bool = False) -> Outcome:
    """Run `steps` steps in the world of `seed`, let it settle, and judge it."""
    world = World(seed)
    error: Exception | None = None
    try:
        world.assign(1)
        for _ in range(steps):
            world.step()
        world.settle()
        world.judge()
    except Exception as found:
        error = found
    return Outcome(
        seed=seed,
        steps=steps,
        commits=world.commits,
        acknowledged=world.acknowledged,
        refused=world.refused,
        reads=world.reads,
        takeovers=world.takeovers + sum(node.takeovers for node in world.nodes),
        sleeps=world.sleeps,
        crashes=world.crashes,
        forgotten=world.kafka.forgotten,
        error=error,
        happened=world.lines() if tell or error else (),
    )
