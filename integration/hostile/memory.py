"""Measures the memory of a process, without the pages of mapped files.

The pages of the server's data file count as resident, but the system can take them back at any time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

INTERVAL_S = 0.02
MOST_BYTES = 3_000_000_000
"""A server that takes more is killed, before it takes all memory of the machine."""


class Sample(NamedTuple):
    at_s: float
    own_bytes: int
    """Anonymous memory, private and shared."""


def _status(pid: int) -> dict[str, int]:
    """The sizes in /proc/PID/status, in bytes; empty for a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in _parts(lines) if rest.endswith(" kB")}


def _parts(lines: list[str]) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in lines]


def own_bytes(pid: int) -> int:
    """The anonymous memory of a process now; 0 if the process is gone."""
    status = _status(pid)
    return status.get("RssAnon", 0) + status.get("RssShmem", 0)


class MemoryWatch:
    """Samples a process's memory from its beginning to `stop()`."""

    def __init__(self, pid: int) -> None:
        self.samples: list[Sample] = []
        self.killed = False
        """True if the process was killed because it took too much memory."""
        self._pid = pid
        self._file_bytes = 0
        self._stopping = threading.Event()
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # the high-water mark begins anew
        self._high_water_is_new = _status(pid).get("VmHWM", 0) <= 1.05 * _status(pid).get("VmRSS", 0)
        self.idle_bytes = own_bytes(pid)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            status = _status(self._pid)
            if not status:
                return
            own = status.get("RssAnon", 0) + status.get("RssShmem", 0)
            self._file_bytes = max(self._file_bytes, status.get("RssFile", 0))
            self.samples.append(Sample(time.monotonic(), own))
            if own > MOST_BYTES and not self.killed:
                self.killed = True
                os.kill(self._pid, signal.SIGKILL)

    def above_idle_bytes(self) -> int:
        """The memory above the idle process's, now."""
        return own_bytes(self._pid) - self.idle_bytes

    def rest(self, kept_bytes: int, timeout_s: float) -> None:
        """Wait until the process has no more than this above the idle memory. A process may also end."""
        deadline = time.monotonic() + timeout_s
        while self.above_idle_bytes() > kept_bytes and time.monotonic() < deadline:
            time.sleep(0.05)

    def peak_bytes(self, since_s: float, until_s: float) -> int:
        """The largest sample above the idle memory."""
        found = (sample.own_bytes for sample in self.samples if since_s <= sample.at_s <= until_s)
        return max(found, default=self.idle_bytes) - self.idle_bytes

    def peak_of_all_bytes(self) -> int:
        """Like `peak_bytes`, for all time, and including the system's own high-water mark."""
        sampled = max((sample.own_bytes for sample in self.samples), default=self.idle_bytes)
        seen = _status(self._pid).get("VmHWM", 0) - self._file_bytes if self._high_water_is_new else 0
        return max(sampled, seen) - self.idle_bytes

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
