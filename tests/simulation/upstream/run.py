"""One history from its seed: faults for a number of steps, then calm."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.upstream.world import STEPS, World


@dataclass(frozen=True)
class Outcome:
    """The outcome of one history; `error` is None if nothing was wrong."""

    seed: int
    steps: int
    commits: int
    transactions: int
    committed: int
    aborted: int
    reads: int
    unstable: int
    crashes: int
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
        transactions=world.transactions,
        committed=world.committed,
        aborted=world.aborted,
        reads=world.reads,
        unstable=world.unstable,
        crashes=world.crashes,
        error=error,
        happened=world.lines() if tell or error else (),
    )
