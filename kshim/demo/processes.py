"""Starts, kills and stops the processes of a run, by name. Their events arrive in one inbox.

Each process has its own process group, so that Ctrl-C reaches only the parent, and a kill also reaches the
process's children.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from kshim.demo.events import Event, Exited, Failed, Killed, Ready, Started, Stopping, from_line, now_ms

READY = "kshim ready "


class Processes:
    """The running processes. As a context manager, it ends them all at the end of the block."""

    def __init__(self, log_dir: Path, inbox: SimpleQueue[Event]) -> None:
        self.inbox = inbox
        self.log_dir = log_dir
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a worker, which prints events on stdout, or the server, which prints its ready line."""
        with self._log(name).open("a") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # A killed process's temporary files are removed with the run's directory.
                env=os.environ | {"TMPDIR": str(self.log_dir)},
                text=True,
                encoding="utf-8",
                process_group=0,
            )
        self._running[name] = process
        self.inbox.put(Started(name=name, at_ms=now_ms()))
        reader = threading.Thread(target=self._read, args=(name, process), daemon=True)
        reader.start()
        self._readers.append(reader)

    def kill(self, name: str) -> None:
        """Send SIGKILL: the process cannot leave the group or close its connections."""
        self.inbox.put(Killed(name=name, at_ms=now_ms()))
        self._signal(self._running[name], signal.SIGKILL)

    def stop(self, name: str) -> None:
        """Close a worker's stdin, which asks it to end."""
        self.inbox.put(Stopping(name=name, at_ms=now_ms()))
        stdin = self._running[name].stdin
        assert stdin is not None
        stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running.values():
            self._signal(process, signal.SIGKILL)
        for reader in self._readers:
            reader.join()

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                told = self._ready(name, line) if line.startswith(READY) else from_line(line)
            except ValueError as error:
                told = Failed(name=name, at_ms=now_ms(), error=str(error))
            self.inbox.put(told)
        status = process.wait()
        self.inbox.put(Exited(name=name, at_ms=now_ms(), status=status, said=self._last_line(name)))

    def _ready(self, name: str, line: str) -> Ready:
        return Ready(name=name, at_ms=now_ms(), address=line.removeprefix(READY).strip())

    def _log(self, name: str) -> Path:
        return self.log_dir / f"{name}.log"

    def _last_line(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

    def _signal(self, process: subprocess.Popen[str], number: signal.Signals) -> None:
        # Signal the group, to reach the process's children (Spark's JVM). The group may be gone already.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
