"""A running server for tests: stop, kill and start it, and steer its brokers, groups, time and faults."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from kshim import platform_fault
from kshim.configs.listeners import PROTOCOL_MAP
from kshim.control.client import ControlError, ask
from kshim.testing import processes
from kshim.testing.arguments import waiting
from kshim.testing.brokers import CLIENT_ID, Again
from kshim.testing.cluster import TIMEOUT_S
from kshim.testing.faults import Fault, Given
from kshim.testing.ports import HOST, Ports
from kshim.testing.quotas import forget_quotas
from kshim.testing.rebalances import Rebalance, check_cause, latest, rebalance_of
from kshim.testing.steered import SteeredCluster

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


class Kshim(SteeredCluster):
    """A running server. It keeps its data and its addresses across `kill` and `start`."""

    def __init__(
        self,
        directory: Path,
        brokers: int,
        properties: Mapping[str, str],
        tls: bool | Sequence[str] = False,
        users: Mapping[str, str] | None = None,
        listeners: Sequence[str] = (),
    ) -> None:
        """listeners: names of further listeners without TLS."""
        super().__init__("")
        self.sasl_bootstrap = ""
        """The addresses where `users` authenticate, with PLAIN or SCRAM; empty without users."""
        self._users = users or {}
        self._listeners = listeners
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

    @waiting
    def start(self) -> None:
        """Start, or start again. Raises NotStarted."""
        if fault := platform_fault(sys.platform):
            raise NotStarted(fault)
        listening = 1 + len(self._listeners) + bool(self._clients) + bool(self._users)
        ports = self._ports = self._ports or Ports(self._brokers * listening)
        listeners = f"PLAINTEXT://{HOST}:{ports.first}"
        for number, name in enumerate(self._listeners, 1):
            listeners += f",{name}://{HOST}:{ports.first + self._brokers * number}"
        if self._clients:
            from kshim.testing.tls import new_tls

            first = ports.first + self._brokers * (1 + len(self._listeners))
            listeners += f",SSL://{HOST}:{first}"
            at = range(first, first + self._brokers)
            self._tls = self._tls or new_tls(self._directory / "certificates", at, self._clients)
        login: Mapping[str, str] = {}
        if self._users:
            from kshim.testing.users import LISTENER, with_users

            first = ports.first + self._brokers * (listening - 1)
            listeners += f",{LISTENER}://{HOST}:{first}"
            self.sasl_bootstrap = _addresses(first, self._brokers)
            login = with_users(self._users)
        ports.let_server_bind()
        properties = {
            **FOR_TESTS,
            **(self._tls.made.server if self._tls else {}),
            **login,
            **_protocols(self._listeners),
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
            raise NotStarted(self.log.strip() or "the server ended before it said anything")
        self.bootstrap = ready.removeprefix(READY).strip()
        for name, password in self._users.items():
            self.add_user(name, password)

    @waiting
    def stop(self) -> None:
        """Send SIGTERM, and wait until the process has ended. Does nothing if it has ended already."""
        self._end(signal.SIGTERM)

    @waiting
    def kill(self) -> None:
        """Send SIGKILL. Nothing that was acknowledged is lost. `start` starts the server again."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop, and release the ports. The server cannot be started again."""
        try:
            self._end(signal.SIGTERM)
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

    @waiting
    def describe(self) -> DescribedCluster:
        """The brokers, and the leader of each partition, as `kshim cluster describe --json` prints them."""
        described: DescribedCluster = self._ask("describe")
        return described

    @waiting
    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make the broker `to` lead a partition.

        Like all steering methods, raises ControlError if refused.
        """
        self._ask("move-leader", topic, partition, to)

    @waiting
    def move_coordinator(self, group_id: str, to: int) -> None:
        """Make the broker `to` coordinate a group."""
        self._ask("move-coordinator", group_id, to)

    @waiting
    def stop_broker(self, node_id: int) -> None:
        """Shut a broker down. Brokers in the ISR take over its partitions."""
        self._ask("stop-broker", node_id)

    @waiting
    def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped."""
        self._ask("start-broker", node_id)

    # ---- its users

    @waiting
    def add_user(self, name: str, password: str) -> None:
        """Add a user for SCRAM, or change its password. The users of PLAIN are fixed at the start."""
        from kshim.testing.users import put_user

        for command in put_user(name, password):
            self._ask(*command)

    @waiting
    def remove_user(self, name: str) -> None:
        """Remove a user's password for SCRAM. Open connections stay open."""
        from kshim.testing.users import MECHANISMS

        for mechanism in MECHANISMS[1:]:
            self._ask("remove-user", name, mechanism)

    # ---- its groups

    @waiting
    def rebalances(self, group: str) -> list[Rebalance]:
        """The last 100 rebalances of a group, the earliest first, without one that is under way."""
        return [rebalance_of(value) for value in self._ask("why", group)["rebalances"]]

    @waiting
    def wait_for_rebalance(
        self, group: str, *, cause: str | None = None, after: int = 0, timeout_s: float = TIMEOUT_S
    ) -> Rebalance:
        """Wait until a rebalance of the group is over, and return the last one that fits.

        cause: in words, such as "a member joined"; None for any. after: a generation; the rebalance has a
        later one. Raises TimeoutError, which lists the rebalances that the group has had.
        """
        if cause is not None:
            check_cause(cause)

        def check() -> Rebalance:
            try:
                found = self.rebalances(group)
            except ControlError as error:
                raise Again(str(error)) from error
            return latest(found, cause, after)

        because = f" because {cause}" if cause else ""
        later = f" after generation {after}" if after else ""
        failure = f"group {group}: waited for a rebalance{because}{later}"
        return self._wait(failure, group, timeout_s, lambda _: check())

    @waiting
    def rebalance(self, group: str) -> None:
        """Make a group rebalance."""
        self._ask("rebalance-group", group)

    @waiting
    def expire(self, group: str, member_id: str) -> None:
        """End a member's session, as if it had sent no heartbeat."""
        self._ask("expire-member", group, member_id)

    @waiting
    def fence(self, group: str, group_instance_id: str) -> None:
        """Fence a static member, as if another client had joined with its group.instance.id."""
        self._ask("fence-member", group, group_instance_id)

    # ---- its faults

    @waiting
    def fault(self, api: str | None = None, **given: Unpack[Given]) -> Fault:
        """Make requests fail, until the fault is removed: `with kshim.fault("Heartbeat", error=…, group=…):`.

        api: such as "OffsetCommit"; None for all. Without `client_id`, the requests of this object do not
        fail. docs/faults.md says what each action does. Raises ControlError.
        """
        spared = {} if given.get("client_id") else {"not_client_id": CLIENT_ID}
        return Fault(self._ask, self._ask("add-fault", {**spared, **given, "api": api})["number"])

    # ---- its time

    @waiting
    def now(self) -> datetime:
        """The server's time, in UTC."""
        return _time(self._ask("clock-now"))

    @waiting
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

    @waiting
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


def _addresses(first: int, brokers: int) -> str:
    """The addresses of brokers whose ports begin with `first`, as clients take them."""
    return ",".join(f"{HOST}:{port}" for port in range(first, first + brokers))


def _protocols(listeners: Sequence[str]) -> dict[str, str]:
    """The property that further listeners need: they are without TLS."""
    known = ",".join((PROTOCOL_MAP, *(f"{name}:PLAINTEXT" for name in listeners)))
    return {"listener.security.protocol.map": known} if listeners else {}


def _time(now: Now) -> datetime:
    return datetime.fromtimestamp(now["now_ms"] / 1000, UTC)
