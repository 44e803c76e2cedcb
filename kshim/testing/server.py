"""A server for one test or many: its own process, on free ports, ended with the block.

with serving(brokers=3) as kshim:
    producer = KafkaProducer(bootstrap_servers=kshim.bootstrap)
    ...
    kshim.stop_broker(1)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kshim.control.client import ask

__all__ = ["Kshim", "NotStarted", "serving"]

STOP_TIMEOUT_S = 20
READY = "kshim ready "


class NotStarted(Exception):
    """The server ended before clients could connect. str() is its log."""


class Kshim:
    """A running server. Across `kill` and `start` it keeps its data and its addresses."""

    def __init__(self, directory: Path, brokers: int, properties: Mapping[str, str]) -> None:
        self.bootstrap = ""
        """The addresses of its brokers, comma-separated, as clients take them."""
        self._directory = directory
        self._brokers = brokers
        self._properties = properties
        self._process: subprocess.Popen[str] | None = None

    @property
    def log(self) -> str:
        """What the server has logged so far, for example why each group has rebalanced."""
        return (self._directory / "log").read_text()

    # ---- the process

    def start(self) -> None:
        """Start, or start again. Raises NotStarted."""
        first = self.bootstrap.partition(",")[0] or "127.0.0.1:0"
        settings = [word for key, value in self._properties.items() for word in ("--set", f"{key}={value}")]
        with (self._directory / "log").open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "kshim", "serve", *settings),
                    *("--listen", first, "--brokers", str(self._brokers)),
                    *("--data-dir", str(self._directory / "data"), "--control", str(self._control)),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if not ready:
            self._process.wait()
            raise NotStarted(self.log.strip())
        self.bootstrap = ready.removeprefix(READY).strip()

    def stop(self) -> None:
        """Send SIGTERM, and wait until the process has ended; does nothing if it already has."""
        self._end("terminate")

    def kill(self) -> None:
        """Send SIGKILL, which loses nothing that was acknowledged. `start` starts the server again."""
        self._end("kill")

    def _end(self, how: str) -> None:
        process, self._process = self._process, None
        if process is not None:
            getattr(process, how)()
            try:
                process.wait(STOP_TIMEOUT_S)
            finally:
                process.kill()
                process.communicate()

    # ---- its brokers

    def describe(self) -> dict[str, Any]:
        """The brokers, and the leader of each partition, as `kshim cluster describe --json` prints them."""
        described: dict[str, Any] = self._ask("describe")
        return described

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Let the broker `to` lead a partition. Like all of these, raises ControlError if refused."""
        self._ask("move-leader", topic, partition, to)

    def move_coordinator(self, group_id: str, to: int) -> None:
        """Let the broker `to` coordinate a group."""
        self._ask("move-coordinator", group_id, to)

    def stop_broker(self, node_id: int) -> None:
        """Shut a broker down; brokers in the ISR take over its partitions."""
        self._ask("stop-broker", node_id)

    def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped."""
        self._ask("start-broker", node_id)

    @property
    def _control(self) -> Path:
        return self._directory / "control"

    def _ask(self, command: str, *arguments: str | int) -> Any:
        return ask(self._control, command, *arguments)


@contextmanager
def serving(brokers: int = 1, properties: Mapping[str, str] | None = None) -> Iterator[Kshim]:
    """A server in its own directory, which is removed at the end. Raises NotStarted.

    properties: those that `kshim config` lists, as in {"num.partitions": "3"}.
    """
    with tempfile.TemporaryDirectory(prefix="kshim-") as directory:
        kshim = Kshim(Path(directory), brokers, properties or {})
        try:
            kshim.start()
            yield kshim
        finally:
            kshim.stop()
