"""The interface between a server and what stands behind its ports: a store, or a Kafka cluster.

    Parts ──▶ Backend.open ──▶ new_broker ──▶ listen(Ports) ──▶ begin

Each step that starts something adds its stop to `Parts.stops`, so a backend has no stop of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from twisted.internet.defer import Deferred

from kshim.control.commands import Commands
from kshim.coordination.group_runtime import GroupRuntime
from kshim.server.ports import B, BehindPorts, Ports
from kshim.storage.interfaces import Activity, PartitionEnds

if TYPE_CHECKING:
    from kshim.cluster import Topic
    from kshim.cluster.described import DescribedConfig
    from kshim.configs.endpoint import Endpoint
    from kshim.control.others import Others
    from kshim.faults.answers import Usual
    from kshim.http.asking import Ask
    from kshim.http.families import Figure


class Backend(BehindPorts[B], Protocol[B]):
    """The records and the groups of a server, and the rules by which its brokers answer."""

    # ---- start, in this order

    async def open(self) -> None:
        """Open the store, or connect to the upstream. Raises StartError."""

    def new_broker(self) -> B:
        """Make the coordinators, and the broker of `Ports.broker`."""

    async def listen(self, ports: Ports[B]) -> None:
        """Accept connections. Raises StartError, CannotListen."""

    def begin(self) -> None:
        """Begin the work that is not for one request. Called once the server is ready."""

    # ---- what people see and steer

    def usual(self) -> Usual[B]:
        """Return the functions that answer without faults, and that refuse. Called at the first fault."""

    @property
    def groups(self) -> GroupRuntime:
        """The groups that this process coordinates."""

    @property
    def is_behind(self) -> bool:
        """True if a coordinator has work to do that is due."""

    @property
    def ends(self) -> PartitionEnds:
        """Where partitions begin and end."""

    @property
    def others(self) -> Others | None:
        """Asks the other processes that share the groups; None where there can be none."""

    def http_opened(self, address: Endpoint) -> None:
        """Note where the HTTP interface listens. Called after `listen`, if there is one."""

    def leader(self, shard: int) -> int:
        """Return the node id of the broker that coordinates a shard's groups; NO_LEADER if none runs."""

    def commands(self, common: Commands, ports: Ports[B]) -> Commands:
        """Return the commands that the server has beside the common ones, or in place of some of them."""

    def why_not_ready(self) -> str:
        """Return why clients cannot use all of a started server; empty if they can."""

    def activity(self) -> Activity:
        """Return what the store is doing."""

    def figures(self) -> Iterable[Figure]:
        """Return what the metrics show of what is behind this server, beside the store."""

    def described(self, addresses: str) -> str:
        """Return what was started, for the log. addresses: where clients reach it."""

    def ask(self, ports: Ports[B]) -> Ask | None:
        """Return a function that asks the brokers; None if the records are not here."""

    def topic_configs(self) -> Callable[[Topic], Iterable[DescribedConfig]] | None:
        """Return a function that describes a topic's configs; None if they are not here."""

    def notice(self, group_id: str) -> str:
        """Return a sentence that the page shows about a group; empty if there is none."""

    @property
    def look(self) -> Callable[[], Deferred[None]] | None:
        """Called before offsets are shown: when it fires, they are current. None if they always are."""
