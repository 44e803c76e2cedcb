"""`kshim serve` as a separate process that a test may kill and start again.

KSHIM_TEST_COMMAND replaces `python -m kshim`, so these tests can run with any program that takes the same
`serve` options and prints the same ready line. `integration/apache_kafka` is such a program for Apache Kafka.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from integration.support.awaiting import wait_until
from integration.support.ports import Slot

FOREIGN_COMMAND = shlex.split(os.environ.get("KSHIM_TEST_COMMAND", ""))
COMMAND = FOREIGN_COMMAND or [sys.executable, "-m", "kshim"]
HEEDS_SIGINT = ("env", "--default-signal=INT")
"""Before a command: SIGINT ends it, also where the shell has it ignored, as in the background."""
READY_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20


def run_to_end(*arguments: str, cwd: Path, timeout_s: float = 20) -> subprocess.CompletedProcess[str]:
    """Run `kshim ARGUMENTS` until it exits by itself."""
    return subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def set_options(properties: Mapping[str, object]) -> list[str]:
    """The options of `serve` that set these properties."""
    return [word for name, value in properties.items() for word in ("--set", f"{name}={value}")]


class Server:
    """A data directory, and the process that serves it.

    When the server restarts, `bootstrap` stays the same; the ports stay reserved meanwhile.
    """

    def __init__(
        self,
        data_dir: Path,
        options: Sequence[str] = (),
        *,
        preexec: Callable[[], None] | None = None,
        command: Sequence[str] = COMMAND,
        listeners: Sequence[str] = (),
    ) -> None:
        """listeners: the listeners' names, if there are several, or the only one is not plain. Their ports
        are consecutive.
        """
        self.data_dir = data_dir
        self.options = list(options)
        self.command = list(command)
        self.listeners = listeners
        self.preexec = preexec
        self.host = "127.0.0.1"
        self.port = 0
        self._slot: Slot | None = None
        self.bootstrap = ""
        """The addresses of all brokers. `host` and `port` are those of the first broker."""
        self.stdout: list[str] = []
        self.log: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start_at(self, slot: Slot) -> Server:
        """Start at the ports of a slot. The options must name these ports."""
        self._slot, self.port = slot, slot.port
        return self.start()

    def start(self) -> Server:
        assert not self.running
        if self._slot is None:
            self._slot = Slot()
            self.port = self._slot.port
        addresses = [f"{name}://{self.host}:{self.port + n}" for n, name in enumerate(self.listeners)]
        listen = ",".join(addresses) or f"{self.host}:{self.port}"
        printed = len(self.stdout)
        self._process = subprocess.Popen(
            [*self.command, "serve", "--listen", listen, "--data-dir", str(self.data_dir), *self.options],
            cwd=self.data_dir.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self.preexec,
        )
        self._readers = [
            _collect(self._process.stdout, self.stdout),
            _collect(self._process.stderr, self.log),
        ]
        wait_until(
            lambda: len(self.stdout) > printed or not self.running,
            READY_TIMEOUT_S,
            lambda: f"a line on stdout\n{self.report()}",
        )
        if len(self.stdout) == printed:
            raise AssertionError(f"the server did not start\n{self.report()}")
        word, state, self.bootstrap = self.stdout[printed].split()
        assert (word, state) == ("kshim", "ready")
        self.host, _, port = self.bootstrap.partition(",")[0].rpartition(":")
        self.port = int(port)
        return self

    def steer(self, *arguments: object) -> str:
        """Run `kshim cluster ARGUMENTS`, which must succeed, and return what it prints."""
        command = [*self.command, "cluster", "--data-dir", str(self.data_dir), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STOP_TIMEOUT_S, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stderr}\n{self.report()}"
        return done.stdout

    def why(self, group: str) -> Any:
        """The JSON that `kshim why GROUP --json` prints."""
        command = [*self.command, "why", group, "--json", "--data-dir", str(self.data_dir)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STOP_TIMEOUT_S, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{self.report()}"
        return json.loads(done.stdout)

    def kill(self) -> None:
        """Send SIGKILL: the server flushes nothing and closes no connection. Wait until it has ended."""
        self.process.kill()
        self._wait()

    def restart(self) -> Server:
        return self.start()

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Stop cleanly, and return the exit status."""
        self.process.send_signal(signal_number)
        return self._wait()

    def wait(self) -> int:
        """Wait until the server ends by itself, and return the exit status."""
        return self._wait()

    def _wait(self) -> int:
        try:
            status = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the server did not stop in {STOP_TIMEOUT_S} s\n{self.report()}") from None
        for reader in self._readers:
            reader.join(STOP_TIMEOUT_S)
        return status

    def rss_bytes(self) -> int:
        """The server's resident memory now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def report(self) -> str:
        """The text that a failed test shows about the server."""
        status = self._process.poll() if self._process else "not started"
        lines = "\n".join(self.log[-60:])
        return f"-- server {self.bootstrap} exit status {status}, stderr:\n{lines}"


def _collect(stream: IO[str] | None, lines: list[str]) -> threading.Thread:
    """Append the stream's lines to `lines` until it ends, so that the process never blocks on a full pipe."""
    assert stream is not None

    def read() -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))
        stream.close()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return reader
