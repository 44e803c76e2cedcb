"""How long a process was ready to run while other work had the processors."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def starved_s(pid: int) -> float:
    """The sum over its threads that live; 0 if it is gone, or if the system does not say."""
    waited_ns = 0
    tasks = Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError, ValueError, IndexError):
        for task in os.listdir(tasks):
            waited_ns += int((tasks / task / "schedstat").read_text().split()[1])
    return waited_ns / 1e9
