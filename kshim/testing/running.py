"""A server's process, and what a test does with it: end, start, steer its brokers and time, fail."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from kshim.control.client import ControlError, ask
from kshim.testing import processes
from kshim.testing.cluster import TIMEOUT_S, Cluster
from kshim.testing.connection import CLIENT_ID
from kshim.testing.faults import Fault, Given
from kshim.testing.groups import TopicPartition
from kshim.testing.ports import HOST, Ports
from kshim.testing.quotas import forget_quotas
from kshim.testing.rebalances import Rebalance, rebalance_of

if TYPE_CHECKING:
    from kshim.testing.tls import Tls

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

    def __init__(
        self,
        directory: Path,
        brokers: int,
        properties: Mapping[str, str],
        tls: bool | Sequence[str] = False,
        users: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__("")
        self.sasl_bootstrap = ""
        """Where `users` authenticate, with PLAIN or SCRAM; empty without users."""
        self._users = users or {}
        self._clients = ("client",) if tls is True else tls or ()
        self._tls: Tls | None = None
        self._directory = directory
        self._brokers = brokers
        self._properties = properties
        self._ports: Ports | None = None
        self._process: processes.ServerProcess | None = None

    @property
    def log(self) -> str:
        """What the server has logged so far, for example why each group has rebalanced."""
        return (self._directory / "log").read_text()

    @property
    def tls(self) -> Tls:
        """How clients connect with TLS, to a server that was started with tls=True."""
        if self._tls is None:
            raise AttributeError("this server has no listener with TLS; start it with serving(tls=True)")
        return self._tls

    # ---- the process

    def start(self) -> None:
        """Start, or start again. Raises NotStarted."""
        listening = 1 + bool(self._clients) + bool(self._users)
        ports = self._ports = self._ports or Ports(self._brokers * listening)
        listeners = f"PLAINTEXT://{HOST}:{ports.first}"
        if self._clients:
            from kshim.testing.tls import new_tls

            first = ports.first + self._brokers
            listeners += f",SSL://{HOST}:{first}"
            at = range(first, first + self._brokers)
            self._tls = self._tls or new_tls(self._directory / "certificates", at, self._clients)
        login: Mapping[str, str] = {}
        if self._users:
            from kshim.testing.users import LISTENER, with_users

            first = ports.first + self._brokers * (listening - 1)
            listeners += f",{LISTENER}://{HOST}:{first}"
            at = range(first, first + self._brokers)
            self.sasl_bootstrap = ",".join(f"{HOST}:{port}" for port in at)
            login = with_users(self._users)
        ports.let_server_bind()
        properties = {
            **FOR_TESTS,
            **(self._tls.made.server if self._tls else {}),
            **login,
            **self._properties,
            "--listen": listeners,
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
        for name, password in self._users.items():
            self.add_user(name, password)

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

    # ---- its users

    def add_user(self, name: str, password: str) -> None:
        """Let a user authenticate with SCRAM, or with another password; PLAIN has the users of the start."""
        from kshim.testing.users import put_user

        for command in put_user(name, password):
            self._ask(*command)

    def remove_user(self, name: str) -> None:
        """Let a user authenticate no more with SCRAM; who is connected stays so."""
        from kshim.testing.users import MECHANISMS

        for mechanism in MECHANISMS[1:]:
            self._ask("remove-user", name, mechanism)

    # ---- its groups

    def rebalances(self, group: str) -> list[Rebalance]:
        """The last 100 rebalances of a group that are over, the earliest first."""
        return [rebalance_of(value) for value in self._ask("why", group)["rebalances"]]

    def rebalance(self, group: str) -> None:
        """Begin a rebalance."""
        self._ask("rebalance-group", group)

    def expire(self, group: str, member_id: str) -> None:
        """End a member's session, as if it had sent no heartbeat."""
        self._ask("expire-member", group, member_id)

    def fence(self, group: str, group_instance_id: str) -> None:
        """Fence a static member, as if another one had come with its group.instance.id."""
        self._ask("fence-member", group, group_instance_id)

    def remove(self, group: str, member: str) -> None:
        """Remove a member, named by its id or its group.instance.id, as Kafka's admin client does."""
        self._ask("remove-member", group, member)

    def empty_group(self, group: str) -> None:
        """Remove all members."""
        self._ask("empty-group", group)

    def delete_group(self, group: str) -> None:
        """Delete a group without members, and its offsets."""
        self._ask("delete-group", group)

    def set_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for a group without members: `kshim.set_offsets("readers", {("orders", 0): 5})`."""
        rows = [[topic, partition, offset] for (topic, partition), offset in offsets.items()]
        self._ask("set-offsets", group, rows)

    def reset_offsets(
        self,
        group: str,
        *topics: str,
        to: Literal["earliest", "latest"] | datetime | None = None,
        shift: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Move the committed offsets of a group without members, and return them.

        topics: none for all partitions that the group has committed. to: a time is that of the first record
        that is not older. shift: in place of `to`, a number of records, below 0 to read some again.
        """
        if (to is None) == (shift is None):
            raise ValueError("give either to or shift")
        if isinstance(to, datetime):
            place, value = "time", int(to.timestamp() * 1000)
        else:
            place, value = to or "shift", shift or 0
        rows = self._ask("reset-offsets", group, [[topic, -1] for topic in topics], place, value)
        return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}

    # ---- its faults

    def fault(self, api: str | None = None, **given: Unpack[Given]) -> Fault:
        """Let requests fail, until the fault is removed: `with kshim.fault("Heartbeat", error=…, group=…):`.

        api: such as "OffsetCommit"; None for all. Without `client_id` the requests of this object are spared.
        docs/faults.md says what each action does. Raises ControlError.
        """
        spared = {} if given.get("client_id") else {"not_client_id": CLIENT_ID}
        return Fault(self._ask, self._ask("add-fault", {**spared, **given, "api": api})["number"])

    # ---- its time

    def now(self) -> datetime:
        """The server's time, in UTC."""
        return _time(self._ask("clock-now"))

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        silent: bool = False,
    ) -> datetime:
        """Move the server's time ahead; return it when all that came due is done.

        Members whose clients are connected stay in their groups, as if they had sent heartbeats meanwhile.
        silent: they have not.
        """
        by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return _time(self._ask("clock-advance", round(by.total_seconds() * 1000), silent))

    @contextmanager
    def hold_time(self) -> Iterator[None]:
        """Let the server's time stand still for the block: no session and no transaction times out."""
        self._ask("clock-hold")
        try:
            yield
        finally:
            self._ask("clock-resume")

    def _begin_reset(self) -> None:
        """Time that is held goes on, no more requests fail, and nobody is limited."""
        with suppress(ControlError):  # nobody listens: that is told soon enough
            self._ask("clock-resume")
            self._ask("remove-faults")
            self._once_reached(TIMEOUT_S, forget_quotas)

    @property
    def _control(self) -> Path:
        return self._directory / "control"

    def _ask(self, command: str, *arguments: object) -> Any:
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


def _time(told: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(told["now_ms"] / 1000, UTC)
