"""Time from a server's start until clients can connect, and its memory when it is idle.

Apache Kafka has the options of the JVM with which it starts soonest, and its directory is formatted before.
"""

from __future__ import annotations

import time
from pathlib import Path
from uuid import uuid4

from benchmarks.generator import Load
from benchmarks.processor import Measured, memory_mib
from benchmarks.servers import Settings, Side

IDLE_S = 2.0
"""After so long the server is idle."""


def start(side: Side, directory: Path, settings: Settings, _: Load) -> Measured:
    """A server with a new data directory."""
    with side.serving(directory / str(uuid4()), settings, quick_start=True) as server:
        time.sleep(IDLE_S)
        idle_mib = memory_mib(server.target.pid, "VmRSS")
        peak_mib = memory_mib(server.target.pid, "VmHWM")
    return Measured({"s to listen": server.started_s, "MiB idle": idle_mib}, peak_mib=peak_mib)
