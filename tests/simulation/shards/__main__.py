"""`python -m tests.simulation.shards SEED` prints one history; `--histories N [--from SEED]` runs many."""

from __future__ import annotations

import sys

from tests.simulation.command import main
from tests.simulation.shards.run import run
from tests.simulation.shards.world import STEPS

if __name__ == "__main__":
    sys.exit(main("tests.simulation.shards", run, STEPS, __doc__))
