"""kshim in front of Apache Kafka, where other tests have kshim alone.

    KSHIM_TEST_COMMAND="env PYTHONPATH=$PWD python -m integration.upstream" pytest integration/clients

runs the tests that were written for kshim with `kshim serve --upstream`, and one node of Apache Kafka behind
it, which begins and ends with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]

COMMAND = ["env", f"PYTHONPATH={_ROOT}", sys.executable, "-m", __name__]
