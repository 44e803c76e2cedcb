"""A running server for tests: stop, kill and start it, and steer its brokers, groups, time and faults."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from kshim.control.client import ControlError, ask
from kshim.testing import processes
from kshim.testing.brokers import CLIENT_ID
from kshim.testing.cluster import TIMEOUT_S, Cluster
from kshim.testing.faults import Fault, Given
from kshim.testing.groups import TopicPartition
from kshim.testing.ports import HOST, Ports
from kshim.testing.quotas import forget_quotas
from kshim.testing.rebalances import Rebalance, rebalance_of

if TYPE_CHECKING:
    from kshim.control.brokers import DescribedCluster
    from kshim.control.time import Now
    from kshim.testing.tls import Tls

__all__ = ["Kshim", "NotStarted"]

STOP_TIMEOUT_S = 20
READY = "kshim ready "
FOR_TESTS: Final = {"flush.policy": "os"}
"""Properties of a test's server. It does not wait for the disk: tests do not lose power, and `kill` does not
lose what was written.
"""
LINES_SHOWN = 5


class NotStarted(Exception):
    """The server ended before clients could connect. str() is its log."""


class Kshim(Cluster):
    """A running server. It keeps its data and its addresses across `kill` and `start`."""

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
        """The addresses where `users` authenticate, with PLAIN or SCRAM; empty without users."""
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
        """The server's log so far. It says, for example, why each group has rebalanced."""
        return (self._directory / "log").read_text()

    @property
    def tls(self) -> Tls:
        """The settings for clients that connect with TLS. The server must have been started with tls=True."""
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
        """Send SIGTERM, and wait until the process has ended. Does nothing if it has ended already."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL. Nothing that was acknowledged is lost. `start` starts the server again."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop, and release the ports. The server cannot be started again."""
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

    def describe(self) -> DescribedCluster:
        """The brokers, and the leader of each partition, as `kshim cluster describe --json` prints them."""
        described: DescribedCluster = self._ask("describe")
        return described

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make the broker `to` lead a partition.

        Like all steering methods, raises ControlError if refused.
        """
        self._ask("move-leader", topic, partition, to)

    def move_coordinator(self, group_id: str, to: int) -> None:
        """Make the broker `to` coordinate a group."""
        self._ask("move-coordinator", group_id, to)

    def stop_broker(self, node_id: int) -> None:
        """Shut a broker down. Brokers in the ISR take over its partitions."""
        self._ask("stop-broker", node_id)

    def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped."""
        self._ask("start-broker", node_id)

    # ---- its users

    def add_user(self, name: str, password: str) -> None:
        """Add a user for SCRAM, or change its password. The users of PLAIN are fixed at the start."""
        from kshim.testing.users import put_user

        for command in put_user(name, password):
            self._ask(*command)

    def remove_user(self, name: str) -> None:
        """Remove a user's password for SCRAM. Open connections stay open."""
        from kshim.testing.users import MECHANISMS

        for mechanism in MECHANISMS[1:]:
            self._ask("remove-user", name, mechanism)

    # ---- its groups

    def rebalances(self, group: str) -> list[Rebalance]:
        """The last 100 rebalances of a group, the earliest first, without one that is under way."""
        return [rebalance_of(value) for value in self._ask("why", group)["rebalances"]]

    def rebalance(self, group: str) -> None:
        """Make a group rebalance."""
        self._ask("rebalance-group", group)

    def expire(self, group: str, member_id: str) -> None:
        """End a member's session, as if it had sent no heartbeat."""
        self._ask("expire-member", group, member_id)

    def fence(self, group: str, group_instance_id: str) -> None:
        """Fence a static member, as if another client had joined with its group.instance.id."""
        self._ask("fence-member", group, group_instance_id)

    def remove(self, group: str, member: str) -> None:
        """Remove a member, as Kafka's admin client does. member: its member id or its group.instance.id."""
        self._ask("remove-member", group, member)

    def empty_group(self, group: str) -> None:
        """Remove all members of a group."""
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

        topics: if none is given, all partitions that the group has committed. to: "earliest", "latest", or a
        time: the first record that is not older. shift: in place of `to`, a number of records, negative to
        read records again.
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
        """Make requests fail, until the fault is removed: `with kshim.fault("Heartbeat", error=…, group=…):`.

        api: such as "OffsetCommit"; None for all. Without `client_id`, the requests of this object do not
        fail. docs/faults.md says what each action does. Raises ControlError.
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
        """Move the server's time ahead, and return the new time when all work that came due is done.

        Members with connected clients stay in their groups, as if they had sent heartbeats meanwhile. silent:
        True if they count as not having sent any.
        """
        by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return _time(self._ask("clock-advance", round(by.total_seconds() * 1000), silent))

    @contextmanager
    def hold_time(self) -> Iterator[None]:
        """Stop the server's time within the block: no session and no transaction times out."""
        self._ask("clock-hold")
        try:
            yield
        finally:
            self._ask("clock-resume")

    def _begin_reset(self) -> None:
        """Make held time go on, and remove all faults and quotas."""
        with suppress(ControlError):  # no server listens: the next request raises a clearer error
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
        """Say who keeps the others waiting, and why the group rebalanced before, from the log."""
        try:
            found = self._ask("explain-group", group) or {}
        except ControlError as error:
            return f"\n  {error}"
        waits = {
            "it rebalances because": found.get("because"),
            "have not joined since": ", ".join(found.get("to_join", ())),
            "were given an id, and have not joined with it": ", ".join(found.get("to_join_first", ())),
            "have not sent SyncGroup": ", ".join(found.get("to_sync", ())),
        }
        lines = [f"{what}: {names}" for what, names in waits.items() if names]
        logged = [line for line in self.log.splitlines() if f"group {group}: " in line]
        return "".join(f"\n  {line}" for line in lines + logged[-LINES_SHOWN:])


def _time(now: Now) -> datetime:
    return datetime.fromtimestamp(now["now_ms"] / 1000, UTC)
