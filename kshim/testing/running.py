"""A server's process, and what a test does with it: end it, start it again, steer its brokers."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kshim.control.client import ControlError, ask
from kshim.testing import processes
from kshim.testing.cluster import Cluster
from kshim.testing.ports import HOST, Ports

__all__ = ["Kshim", "NotStarted"]

STOP_TIMEOUT_S = 20
READY = "kshim ready "
FOR_TESTS: Final = {"flush.policy": "os"}
"""No test loses power, and `kill` loses nothing that was written: nobody has to wait for the disk."""
LINES_TOLD = 5


class NotStarted(Exception):
    """The server ended before clients could connect. str() is its log."""


class Kshim(Cluster):
    """A running server. Across `kill` and `start` it keeps its data and its addresses."""

    def __init__(self, directory: Path, brokers: int, properties: Mapping[str, str]) -> None:
        super().__init__("")
        self._directory = directory
        self._brokers = brokers
        self._properties = properties
        self._ports: Ports | None = None
        self._process: processes.ServerProcess | None = None

    @property
    def log(self) -> str:
        """What the server has logged so far, for example why each group has rebalanced."""
        return (self._directory / "log").read_text()

    # ---- the process

    def start(self) -> None:
        """Start, or start again. Raises NotStarted."""
        ports = self._ports = self._ports or Ports(self._brokers)
        ports.let_server_bind()
        properties = {
            **FOR_TESTS,
            **self._properties,
            "--listen": f"{HOST}:{ports.first}",
            "--brokers": str(self._brokers),
            "--data-dir": str(self._directory / "data"),
            "--control": str(self._control),
        }
        with (self._directory / "log").open("ab") as log:
            self._process = processes.start(properties, log)
        ready = self._process.read_line()
        if not ready:
            self._process.wait(STOP_TIMEOUT_S)
            raise NotStarted(self.log.strip())
        self.bootstrap = ready.removeprefix(READY).strip()

    def stop(self) -> None:
        """Send SIGTERM, and wait until the process has ended; does nothing if it already has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, which loses nothing that was acknowledged. `start` starts the server again."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop, and give the addresses up; the server cannot be started again."""
        try:
            self.stop()
        finally:
            if self._ports is not None:
                self._ports.close()

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(number, STOP_TIMEOUT_S)
            assert self._ports is not None
            self._ports.hold()

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

    # ---- explaining

    def _more_about(self, group: str) -> str:
        """Who keeps the others waiting, and why the group rebalanced before, as the log says."""
        try:
            found = self._ask("explain-group", group) or {}
        except ControlError as error:
            return f"\n  {error}"
        told = {
            "it rebalances because": found.get("because"),
            "have not joined since": ", ".join(found.get("to_join", ())),
            "were given an id, and have not joined with it": ", ".join(found.get("to_join_first", ())),
            "have not sent SyncGroup": ", ".join(found.get("to_sync", ())),
        }
        lines = [f"{what}: {names}" for what, names in told.items() if names]
        logged = [line for line in self.log.splitlines() if f"group {group}: " in line]
        return "".join(f"\n  {line}" for line in lines + logged[-LINES_TOLD:])
