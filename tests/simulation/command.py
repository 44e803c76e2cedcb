"""The command line of a simulation: print the history of one seed, or run many until one fails."""

from __future__ import annotations

import argparse
import logging
import time
import traceback
from collections import Counter
from collections.abc import Callable

from tests.simulation.outcome import Outcome


def main(package: str, run: Callable[..., Outcome], steps: int, description: str | None) -> int:
    """Returns exit status 1 if a history went wrong. It calls run(seed, steps, tell=bool)."""
    command = f"python -m {package}"
    parser = argparse.ArgumentParser(prog=command, description=description)
    parser.add_argument("seed", nargs="?", type=int, help="print the history of this seed")
    parser.add_argument("--histories", type=int, default=0, help="run so many histories")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of their seeds")
    parser.add_argument("--steps", type=int, default=steps, help="steps per history (default: %(default)s)")
    arguments = parser.parse_args()
    if (arguments.seed is None) == (arguments.histories < 1):
        parser.error("give either a seed or --histories")
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        return _tell(run(arguments.seed, arguments.steps, tell=True))
    totals: Counter[str] = Counter()
    started = time.monotonic()
    for seed in range(arguments.first, arguments.first + arguments.histories):
        outcome = run(seed, arguments.steps)
        totals.update(outcome.counts)
        if outcome.error is not None:
            _tell(outcome)
            print(f"{command} {seed} tells it again")
            return 1
    a_minute = arguments.histories / (time.monotonic() - started) * 60
    numbers = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in totals.items())
    print(f"{arguments.histories:,} histories, {a_minute:,.0f} a minute: {numbers}")
    return 0


def _tell(outcome: Outcome) -> int:
    print(*outcome.happened, sep="\n")
    if outcome.error is None:
        print(f"seed {outcome.seed}: all is well")
        return 0
    traceback.print_exception(outcome.error)
    print(f"seed {outcome.seed}: {outcome.error!r}")
    return 1
