"""Apache Kafka behind kshim's command line: what would Kafka answer?

`Server(data_dir, command=apache_kafka.COMMAND)` is Apache Kafka where `Server(data_dir)` is kshim, and

    KSHIM_TEST_COMMAND="env PYTHONPATH=$PWD python -m integration.apache_kafka" pytest integration

runs the tests that were written for kshim against Apache Kafka, to see that they expect only what Kafka
answers. Java and Maven are needed. $KSHIM_TEST_KAFKA is the version ("4.2.2"); `jars` names the usual one.
`--version` chooses another for one server.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]

COMMAND = ["env", f"PYTHONPATH={_ROOT}", sys.executable, "-m", __name__]
