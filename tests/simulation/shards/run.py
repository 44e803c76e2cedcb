"""One history from its seed: faults for a number of steps, then calm, in which somebody leads."""

from __future__ import annotations

from tests.simulation.outcome import Outcome, outcome_of
from tests.simulation.shards.world import STEPS, World


def run(seed: int, steps: int = STEPS, *, tell: bool = False) -> Outcome:
    """Run `steps` steps in the world of `seed`, let it settle, and judge it."""
    world = World(seed)

    def counts() -> dict[str, int]:
        return {
            "commits": world.commits,
            "acknowledged": world.acknowledged,
            "refused": world.refused,
            "reads": world.reads,
            "takeovers": world.takeovers + sum(node.takeovers for node in world.nodes),
            "sleeps": world.sleeps,
            "crashes": world.crashes,
            "forgotten": world.kafka.forgotten,
        }

    return outcome_of(seed, lambda: world.play(steps), counts, world.lines, tell=tell)
