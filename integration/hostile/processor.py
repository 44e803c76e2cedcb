"""Measures how long a process has computed, and how long other work has kept it from computing."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

TICKS_IN_S = os.sysconf("SC_CLK_TCK")


class Times(NamedTuple):
    """Total times of all living threads of a process; 0 if the process is gone."""

    ran_s: float
    """How long the threads have run on a processor."""
    starved_s: float
    """How long the threads were ready to run while other work had the processors."""


def stolen_s() -> float:
    """The total time in which other machines on the same host had the processors of this one.

    0 if the system does not report it.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/stat").read_text().split(None, 9)[8]) / TICKS_IN_S
    return 0


def times(pid: int) -> Times:
    """The times of a process; zeros if the system does not report them."""
    ran_ns = waited_ns = 0
    tasks = Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError, ValueError, IndexError):
        for task in os.listdir(tasks):
            ran, waited, _ = (tasks / task / "schedstat").read_text().split()
            ran_ns += int(ran)
            waited_ns += int(waited)
    return Times(ran_ns / 1e9, waited_ns / 1e9)
