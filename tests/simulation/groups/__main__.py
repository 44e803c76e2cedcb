"""`python -m tests.simulation.groups SEED` prints one history; `--histories N [--from SEED]` runs many."""

from __future__ import annotations

import sys

from tests.simulation.command import main
from tests.simulation.groups.run import STEPS, run

COUNTED = (
    "steps",
    "requests",
    "rebalances",
    "client_crashes",
    "broker_crashes",
    "shard_moves",
    "failed_appends",
)

if __name__ == "__main__":
    sys.exit(main("tests.simulation.groups", run, COUNTED, STEPS, __doc__))
