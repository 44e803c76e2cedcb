"""`python -m tests.simulation.groups SEED` prints one history; `--histories N [--from SEED]` runs many."""

from __future__ import annotations

import sys

from tests.simulation.command import main
from tests.simulation.groups.run import STEPS, run

if __name__ == "__main__":
    sys.exit(main("tests.simulation.groups", run, STEPS, __doc__))
