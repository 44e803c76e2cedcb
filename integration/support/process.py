"""A process that prints lines while it runs. Each line is handled as it comes; the log is in a file."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from integration.support.awaiting import wait_until

TIMEOUT_S = 20.0


class Process:
    """A running process. A subclass handles its lines in `_hear`.

    The subclass must set the fields that `_hear` needs before it calls this class's constructor.
    """

    def __init__(
        self, command: Sequence[str], log_path: Path, *, mode: str = "w", cwd: Path | None = None
    ) -> None:
        """mode: "a" for a log file that several processes share."""
        self.log_path = log_path
        with log_path.open(mode) as log:
            self._process = subprocess.Popen(
                command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # a killed process may leave half a line, which is ignored
                self._hear(line.rstrip("\n"))

    def _hear(self, line: str) -> None:
        """Handle a line that the process has printed. Called on a separate thread."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def tell(self, line: str) -> None:
        """Write a line to the process's standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def stop(self, timeout_s: float = TIMEOUT_S) -> None:
        """Send SIGTERM, and wait until the process has ended in good order."""
        self._process.terminate()
        self.wait_gone(timeout_s)

    def terminate(self) -> None:
        """Send SIGTERM, and do not wait."""
        self._process.terminate()

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL: the process flushes nothing and closes nothing. Wait until it has ended."""
        self._process.kill()
        self.wait_gone()

    def freeze(self) -> None:
        """Send SIGSTOP: the process stands still without noticing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def wait_gone(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the process has ended, and all its lines were handled."""
        wait_until(lambda: not self.running, timeout_s, lambda: f"the end of a process\n{self.report()}")
        self._reader.join(timeout_s)

    def end(self) -> None:
        """Kill the process if it still runs."""
        if self.running:
            self._process.kill()
        self._process.wait()

    def report(self) -> str:
        """The text that a failed test shows about the process."""
        raise NotImplementedError

    def _log_lines(self, most: int) -> list[str]:
        return self.log_path.read_text().splitlines()[-most:]
