"""How long a process has computed, and how long it was kept from it by other work."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

TICKS_IN_S = os.sysconf("SC_CLK_TCK")


class Times(NamedTuple):
    """The times of all threads of a process that live, together; 0 if the process is gone."""

    ran_s: float
    """How long they have had a processor."""
    starved_s: float
    """How long they were ready to run while other work had the processors."""


def stolen_s() -> float:
    """How long other machines on the same host had the processors of this one, all together; 0 if the system
    does not say.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/stat").read_text().split(None, 9)[8]) / TICKS_IN_S
    return 0


def times(pid: int) -> Times:
    """The times of a process; zeros if the system does not say."""
    ran_ns = waited_ns = 0
    tasks = Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError, ValueError, IndexError):
        for task in os.listdir(tasks):
            ran, waited, _ = (tasks / task / "schedstat").read_text().split()
            ran_ns += int(ran)
            waited_ns += int(waited)
    return Times(ran_ns / 1e9, waited_ns / 1e9)
