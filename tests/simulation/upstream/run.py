"""One history from its seed: faults for a number of steps, then calm."""

from __future__ import annotations

from tests.simulation.outcome import Outcome, outcome_of
from tests.simulation.upstream.world import STEPS, World


def run(seed: int, steps: int = STEPS, *, tell: bool = False) -> Outcome:
    """Run `steps` steps in the world of `seed`, let it settle, and judge it."""
    world = World(seed)

    def counts() -> dict[str, int]:
        kinds = ("commits", "transactions", "committed", "aborted", "reads", "unstable", "crashes")
        return {kind: getattr(world, kind) for kind in kinds}

    return outcome_of(seed, lambda: world.play(steps), counts, world.lines, tell=tell)
