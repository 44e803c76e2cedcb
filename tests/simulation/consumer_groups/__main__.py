"""`python -m tests.simulation.consumer_groups SEED` prints one history; `--histories N` runs more."""

from __future__ import annotations

import sys

from tests.simulation.command import main
from tests.simulation.consumer_groups.run import STEPS, run

if __name__ == "__main__":
    sys.exit(main("tests.simulation.consumer_groups", run, STEPS, __doc__))
