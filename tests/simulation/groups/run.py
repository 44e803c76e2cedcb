"""One history from its seed: faults for a number of steps, then calm, in which all must come right."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.groups import faults
from tests.simulation.groups.history import lines
from tests.simulation.groups.world import World

STEPS = 200


@dataclass(frozen=True)
class Outcome:
    """The outcome of one history; `error` is None if nothing was wrong."""

    seed: int
    steps: int
    requests: int
    rebalances: int
    broker_crashes: int
    client_crashes: int
    shard_moves: int
    failed_appends: int
    error: Exception | None
    happened: tuple[str, ...]
    """The lines of the history, if they were asked for or something was wrong."""


def run(seed: int, steps: int = STEPS, *, tell: bool = False, parks: bool | None = None) -> Outcome:
    """Run `steps` steps in the world of `seed`, and then let it come to rest.

    parks: whether the brokers park heartbeats; if it is not said, those of odd seeds do.
    """
    world = World(seed, parks=seed % 2 == 1 if parks is None else parks)
    trouble = world.chance.choice((0.02, 0.1, 0.3))
    error: Exception | None = None
    try:
        for _ in range(steps):
            if world.chance.random() < trouble:
                faults.happens(world)
                world.look()
            if not world.step():
                world.newcomer()
        world.settles()
    except Exception as found:
        error = found
    return Outcome(
        seed=seed,
        steps=world.steps,
        requests=world.requests,
        rebalances=world.checks.rebalances,
        broker_crashes=world.broker_crashes,
        client_crashes=world.client_crashes,
        shard_moves=world.moves,
        failed_appends=world.journal.failed,
        error=error,
        happened=tuple(lines(world.happened)) if tell or error else (),
    )
