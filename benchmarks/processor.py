"""Processor time and memory of processes, as Linux counts them in /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TICKS_S = os.sysconf("SC_CLK_TCK")
RESET_PEAK = "5"

Threads = Mapping[str, tuple[float, float]]
"""For each thread the seconds that it ran, and those that it waited for a core."""


def cpu_s(pid: int) -> float:
    """The processor time of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def memory_mib(pid: int, line: str) -> float:
    """A line of /proc/PID/status: VmRSS, the resident memory, or VmHWM, its peak; both with mapped files."""
    status = Path(f"/proc/{pid}/status").read_text()
    (found,) = (each for each in status.splitlines() if each.startswith(f"{line}:"))
    return int(found.split()[1]) / 1024


def load_average() -> float:
    """The average number of processes that ran or were ready to run in the last minute."""
    return os.getloadavg()[0]


def reset_peak(pid: int) -> None:
    """Reset VmHWM to the resident memory of now, where the system permits it."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)


def own_threads() -> Threads:
    """The threads of this process. Empty where the kernel does not count them."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread may end meanwhile
            ran, waited, _ = (task / "schedstat").read_text().split()
            found[task.name] = (int(ran) / 1e9, int(waited) / 1e9)
    return found


def busiest(before: Threads, after: Threads, seconds: float) -> float:
    """The share of its time that the busiest thread ran, from 0 to 1.

    The time in which it could not run, because others had the cores, does not count: a thread with a share
    near 1 never waited for the server.
    """
    shares = [0.0]
    for thread, (ran, waited) in after.items():
        ran_before, waited_before = before.get(thread, (0.0, 0.0))
        could_run_s = max(seconds - (waited - waited_before), ran - ran_before, 1e-9)
        shares.append((ran - ran_before) / could_run_s)
    return max(shares)


@dataclass(frozen=True)
class Measured:
    """The figures of one round of one side."""

    figures: dict[str, float]
    """By name and unit, the main one first."""
    requests: int = 0
    """How many were answered while the processor time was counted."""
    server_cpu_s: float | None = None
    """None if the server is not on this machine."""
    generator_busy: float = 0.0
    """As `busiest` says."""
    peak_mib: float | None = None
    """Of the server's memory."""

    @property
    def cpu_us_a_request(self) -> float | None:
        if self.server_cpu_s is None or not self.requests:
            return None
        return self.server_cpu_s / self.requests * 1e6

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Window:
    """The time in which is measured: what the server and this process, the generator, use meanwhile."""

    def __init__(self, pid: int) -> None:
        """`pid`: the server's; 0 if it is not on this machine."""
        self._pid = pid
        self.seconds = 0.0

    def __enter__(self) -> Window:
        self._threads = own_threads()
        self._cpu_s = cpu_s(self._pid) if self._pid else 0.0
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        self.server_cpu_s = cpu_s(self._pid) - self._cpu_s if self._pid else None
        self.generator_busy = busiest(self._threads, own_threads(), self.seconds)

    @property
    def so_far_s(self) -> float:
        return time.perf_counter() - self._began

    def measured(self, requests: int, figures: dict[str, float]) -> Measured:
        """After the window."""
        return Measured(figures, requests, self.server_cpu_s, self.generator_busy)
