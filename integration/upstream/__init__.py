"""kshim in front of Apache Kafka, behind the command line of both: `Server(data_dir, command=COMMAND)`.

The groups are kept in memory here, or with `--shared` in the upstream. `--upstream HOST:PORT,...` names a
cluster that runs already; without it one node is started with kshim, and ends with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]

COMMAND = ["env", f"PYTHONPATH={_ROOT}", sys.executable, "-m", __name__]
