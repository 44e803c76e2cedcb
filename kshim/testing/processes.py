"""Starts servers, by way of one helper process that has imported kshim already.

The helper, `kshim.cli.warm`, forks them. The first server takes as long as an interpreter needs to import
kshim, all others take some milliseconds. The helper and all its servers end when this process ends, however
that happens.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

__all__ = ["ServerProcess", "start", "warm_up"]

MAX_STATUS_BYTES = 16


class ServerProcess:
    """The process of a server that was started."""

    def __init__(self, helper: _Helper, pid: int, output: BinaryIO, end: socket.socket) -> None:
        self._helper, self._pid, self._output, self._end = helper, pid, output, end

    def read_line(self) -> str:
        """Return the next line that the server prints; empty once it has ended."""
        return self._output.readline().decode()

    def end(self, number: signal.Signals, timeout_s: float) -> None:
        """Send a signal, and wait until the process has ended. If it takes longer than `timeout_s`, kill it,
        and raise TimeoutError.
        """
        try:
            self._helper.ask("signal", self._pid, int(number))
            self.wait(timeout_s)
        except TimeoutError:
            self._helper.ask("signal", self._pid, int(signal.SIGKILL))
            self.wait(timeout_s)
            raise
        finally:
            self._output.close()
            self._end.close()

    def wait(self, timeout_s: float) -> None:
        """Wait until the process has ended, and its ports and files are free. Raises TimeoutError."""
        self._end.settimeout(timeout_s)
        self._end.recv(MAX_STATUS_BYTES)


class _Helper:
    """The helper process; sends it commands."""

    def __init__(self) -> None:
        self._commands, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kshim.cli.warm", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C ends the tests, which end their servers
            )
        self._answers = self._commands.makefile("rb")
        self._one_at_a_time = threading.Lock()
        self.owner = os.getpid()

    @property
    def runs(self) -> bool:
        """True if the helper runs, and this process started it. A fork of this process needs another one."""
        return self.owner == os.getpid() and self._process.poll() is None

    def ask(self, *command: object, descriptors: tuple[int, ...] = ()) -> Any:
        """Send a command, and return its answer. Raises ConnectionError if the helper is gone."""
        with self._one_at_a_time:
            line = json.dumps(command).encode() + b"\n"
            sent = socket.send_fds(self._commands, [line], descriptors)
            self._commands.sendall(line[sent:])
            answer = self._answers.readline()
        if not answer:
            raise ConnectionAbortedError("the process that starts servers is gone")
        return json.loads(answer)

    def close(self) -> None:
        """End the helper and its servers."""
        if self.runs:
            self._answers.close()
            self._commands.close()
            self._process.wait()


_helper: _Helper | None = None
_lock = threading.Lock()


def warm_up() -> None:
    """Begin to import kshim, in another process, so that a later `start` takes less time."""
    _running_helper()


def start(properties: Mapping[str, str], log: BinaryIO) -> ServerProcess:
    """Start `kshim serve` with these properties. Its log is appended to `log`."""
    helper = _running_helper()
    readable, writable = os.pipe()
    end, theirs = socket.socketpair()
    with theirs:
        try:
            descriptors = (writable, log.fileno(), theirs.fileno())
            pid = helper.ask("start", dict(properties), descriptors=descriptors)
        finally:
            os.close(writable)
    return ServerProcess(helper, pid, os.fdopen(readable, "rb"), end)


def _running_helper() -> _Helper:
    global _helper
    with _lock:
        if _helper is None or not _helper.runs:
            _helper = _Helper()
            atexit.register(_helper.close)
        return _helper
