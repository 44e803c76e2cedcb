"""`python -m tests.simulation.transactions SEED` shows a history; `--histories N [--from SEED]` runs many."""

from __future__ import annotations

import sys

from tests.simulation.command import main
from tests.simulation.transactions.simulated import STEPS, run

if __name__ == "__main__":
    sys.exit(main("tests.simulation.transactions", run, STEPS, __doc__))
