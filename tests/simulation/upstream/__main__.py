"""`python -m tests.simulation.upstream SEED` prints one history; `--histories N [--from SEED]` runs many."""

from __future__ import annotations

import sys

from tests.simulation.command import main
from tests.simulation.upstream.run import run
from tests.simulation.upstream.world import STEPS

if __name__ == "__main__":
    sys.exit(main("tests.simulation.upstream", run, STEPS, __doc__))
