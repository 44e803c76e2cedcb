"""One history from its seed: faults for a number of steps, then calm, in which all must come right."""

from __future__ import annotations

from tests.simulation.groups import faults
from tests.simulation.groups.history import lines
from tests.simulation.groups.world import World
from tests.simulation.outcome import Outcome, outcome_of

STEPS = 200


def run(seed: int, steps: int = STEPS, *, tell: bool = False, parks: bool | None = None) -> Outcome:
    """Run `steps` steps in the world of `seed`, and then let it come to rest.

    parks: whether the brokers park heartbeats; if it is not said, those of odd seeds do.
    """
    world = World(seed, parks=seed % 2 == 1 if parks is None else parks)
    trouble = world.chance.choice((0.02, 0.1, 0.3))

    def play() -> None:
        for _ in range(steps):
            if world.chance.random() < trouble:
                faults.happens(world)
                world.look()
            if not world.step():
                world.newcomer()
        world.settles()

    def counts() -> dict[str, int]:
        return {
            "steps": world.steps,
            "requests": world.requests,
            "rebalances": world.checks.rebalances,
            "client_crashes": world.client_crashes,
            "broker_crashes": world.broker_crashes,
            "shard_moves": world.moves,
            "failed_appends": world.journal.failed,
        }

    return outcome_of(seed, play, counts, lambda: lines(world.happened), tell=tell)
