"""The work of all programs of the museum: some milliseconds for each record, and a line when it is done."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

BOOTSTRAP = os.environ.get("KSHIM_BOOTSTRAP", "")
GROUP = os.environ.get("KSHIM_GROUP", "")
TOPIC = os.environ.get("KSHIM_TOPIC", "")
OUTPUT = os.environ.get("KSHIM_OUTPUT", "")
INSTANCE = os.environ.get("KSHIM_INSTANCE", "")
STATE_DIR = os.environ.get("KSHIM_STATE_DIR", "")
SESSION_MS = os.environ.get("SESSION_MS", "")
"""The session timeout to ask for, where no torture ends sessions; "" for the client's own."""
WORK_S = 0.012

over = threading.Event()
"""Set at SIGTERM: the program ends in good order."""


def end_at_sigterm() -> None:
    """End in good order at SIGTERM. Leave the process id where a test asks for it."""
    if directory := os.environ.get("KSHIM_MUSEUM_PIDS"):
        Path(directory, str(os.getpid())).touch()
    signal.signal(signal.SIGTERM, lambda *_: over.set())


def work(topic: str, partition: int, offset: int) -> None:
    """Process one record, and report it."""
    time.sleep(WORK_S)
    report(topic, partition, offset)


def report(topic: str, partition: int, offset: int) -> None:
    sys.stdout.write(f"processed {topic} {partition} {offset}\n")
    sys.stdout.flush()
