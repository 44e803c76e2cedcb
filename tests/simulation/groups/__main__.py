"""`python -m tests.simulation.groups SEED` tells one history; `--histories N [--from SEED]` runs many."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections import Counter

from tests.simulation.groups.run import STEPS, Outcome, run

COUNTED = (
    "steps",
    "requests",
    "rebalances",
    "client_crashes",
    "broker_crashes",
    "shard_moves",
    "failed_appends",
)


def main() -> int:
    """Exit status 1 where a history went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.groups", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int, help="tell the history of this seed")
    parser.add_argument("--histories", type=int, default=0, help="run so many")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of their seeds")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each history (default: %(default)s)")
    arguments = parser.parse_args()
    if (arguments.seed is None) == (arguments.histories < 1):
        parser.error("give either a seed or --histories")
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        return _tell(run(arguments.seed, arguments.steps, tell=True))
    return _run_many(range(arguments.first, arguments.first + arguments.histories), arguments.steps)


def _tell(outcome: Outcome) -> int:
    print(*outcome.happened, sep="\n")
    if outcome.error is None:
        print(f"seed {outcome.seed}: all is well")
        return 0
    traceback.print_exception(outcome.error)
    print(f"seed {outcome.seed}: {outcome.error!r}")
    return 1


def _run_many(seeds: range, steps: int) -> int:
    totals: Counter[str] = Counter()
    started = time.monotonic()
    for done, seed in enumerate(seeds, 1):
        outcome = run(seed, steps)
        totals.update({name: getattr(outcome, name) for name in COUNTED})
        if outcome.error is not None:
            _tell(outcome)
            print(
                f"history {done} has the first fault; python -m tests.simulation.groups {seed} tells it again"
            )
            return 1
    minutes = (time.monotonic() - started) / 60
    counted = ", ".join(f"{totals[name]:,} {name.replace('_', ' ')}" for name in COUNTED)
    print(f"{len(seeds):,} histories, {len(seeds) / minutes:,.0f} a minute: {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
