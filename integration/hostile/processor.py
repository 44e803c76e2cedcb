"""How long other work had the processors while a process was ready to run."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TICKS_IN_S = os.sysconf("SC_CLK_TCK")


def stolen_s() -> float:
    """How long other machines on the same host had the processors of this one, all together; 0 if the system
    does not say.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/stat").read_text().split(None, 9)[8]) / TICKS_IN_S
    return 0


def starved_s(pid: int) -> float:
    """The sum over its threads that live; 0 if it is gone, or if the system does not say."""
    waited_ns = 0
    tasks = Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError, ValueError, IndexError):
        for task in os.listdir(tasks):
            waited_ns += int((tasks / task / "schedstat").read_text().split()[1])
    return waited_ns / 1e9
