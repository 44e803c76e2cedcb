"""A process that prints lines while it runs: they are heard as they come, and its log is in a file."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from integration.support.awaiting import wait_until

TIMEOUT_S = 20.0


class Process:
    """A running process. Whoever inherits says what it hears, and sets what that needs before it begins."""

    def __init__(
        self, command: Sequence[str], log_path: Path, *, mode: str = "w", cwd: Path | None = None
    ) -> None:
        """mode: "a" for a log that several share."""
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
            if line.endswith("\n"):  # a killed process may leave half a line; it counts as not printed
                self._hear(line.rstrip("\n"))

    def _hear(self, line: str) -> None:
        """A line was printed. Called on a thread of its own."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def stop(self, timeout_s: float = TIMEOUT_S) -> None:
        """SIGTERM: it takes its leave."""
        self._process.terminate()
        self.wait_gone(timeout_s)

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nobody is told."""
        self._process.kill()
        self.wait_gone()

    def freeze(self) -> None:
        """SIGSTOP: it stands still, and does not know."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def wait_gone(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until it has ended, and all that it printed was heard."""
        wait_until(lambda: not self.running, timeout_s, lambda: f"the end of a process\n{self.report()}")
        self._reader.join(timeout_s)

    def end(self) -> None:
        """Leave no process behind, whatever the test's outcome."""
        if self.running:
            self._process.kill()
        self._process.wait()

    def report(self) -> str:
        """What a failed test shows about it."""
        raise NotImplementedError

    def _log_lines(self, most: int) -> list[str]:
        return self.log_path.read_text().splitlines()[-most:]
