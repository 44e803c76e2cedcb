"""`python -m tests.simulation.upstream SEED` prints one history; `--histories N [--from SEED]` runs many."""

from __future__ import annotations

import sys

from tests.simulation.command import main
from tests.simulation.upstream.run import run
from tests.simulation.upstream.world import STEPS

COUNTED = ("commits", "transactions", "committed", "aborted", "reads", "unstable", "crashes")

if __name__ == "__main__":
    sys.exit(main("tests.simulation.upstream", run, COUNTED, STEPS, __doc__))
