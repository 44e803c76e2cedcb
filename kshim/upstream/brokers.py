"""The upstream's brokers: where each is, which of kshim's ports stands for it, and whether that port is open.

Every LOOK_S, kshim asks the upstream which brokers run. The port of a broker that does not run refuses
connections. A broker that is seen for the first time gets the next port.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from twisted.internet.defer import Deferred

from kshim.configs.endpoint import Endpoint
from kshim.configs.host_pattern import HostPattern
from kshim.network.listeners import CannotListen
from kshim.upstream.indexes import Indexes
from kshim.upstream.rewriting import Place

logger = logging.getLogger(__name__)

NOBODY = -1


class Port(Protocol):
    """The listening ports of one broker; see `BrokerListeners`."""

    def suspend(self) -> Deferred[None]:
        """Refuse connections, and close the open ones."""

    def resume(self) -> Deferred[None]:
        """Accept connections again. Errbacks CannotListen."""


@dataclass(slots=True)
class Stood:
    """An upstream broker and its port."""

    node_id: int
    index: int
    address: Endpoint
    """The broker's address at the upstream."""
    port: Port
    is_open: bool = True
    is_changing: bool = False
    """True while the port opens or closes. A change in that time is seen at the next look."""


OpenPort = Callable[[int, int], Port]
"""Opens the port of (node id, index). Raises CannotListen."""


class Brokers:
    """All brokers that were ever seen."""

    def __init__(
        self, indexes: Indexes, open_port: OpenPort, has_fellows: Callable[[], bool] = lambda: False
    ) -> None:
        """has_fellows: returns True if other kshim processes are in front of the upstream."""
        self._has_fellows = has_fellows
        self._indexes = indexes
        self._open_port = open_port
        self._known: dict[int, Stood] = {}
        self.faults: dict[int, str] = {}
        """Why a broker has no port, by node id."""
        self.running: tuple[int, ...] = ()
        """The node ids of the running brokers, from the upstream's last answer."""
        self.names: Mapping[str, HostPattern] = {}
        """The brokers' names at listeners where all share a port, by listener name."""
        self.anchor = NOBODY
        """The broker at whose ports other processes' clients reach this one. They stay open even if it does
        not run.
        """

    def open(self, cluster_id: str) -> None:
        """Read which port each broker had before. Raises WrongUpstream."""
        self._indexes.open(cluster_id)

    def address(self, node_id: int) -> Endpoint:
        """Return a broker's address at the upstream."""
        return self._known[node_id].address

    def addresses(self) -> list[Endpoint]:
        """Return all brokers' addresses, those of running brokers first."""
        known = sorted(self._known.values(), key=lambda each: each.node_id not in self.running)
        return [each.address for each in known]

    def runs(self) -> dict[int, bool]:
        """Return whether each broker that was ever seen runs, by node id."""
        return {node_id: node_id in self.running for node_id in sorted(self._known)}

    def ports(self) -> dict[int, int]:
        """Return how far each broker's port is from the anchor's, by node id; empty before there is one."""
        if self.anchor == NOBODY:
            return {}
        first = self._known[self.anchor].index
        return {node_id: known.index - first for node_id, known in sorted(self._known.items())}

    def see(self, node_id: int, address: Endpoint) -> Stood | None:
        """Note a broker's address, and open a port for a new broker. None if that fails."""
        known = self._known.get(node_id)
        if known is not None:
            known.address = address
            return known
        try:
            index = self._indexes.add(node_id)
            port = self._open_port(node_id, index)
        except (OSError, CannotListen) as error:
            self.faults[node_id] = str(error)
            logger.error("upstream broker %d at %s cannot be reached here: %s", node_id, address, error)
            return None
        self.faults.pop(node_id, None)
        logger.info("upstream broker %d at %s has port number %d here", node_id, address, index)
        known = self._known[node_id] = Stood(node_id, index, address, port)
        return known

    def update(self, running: Mapping[int, Endpoint]) -> None:
        """Take the running brokers from the upstream's answer. Open their ports, and close those of the
        others.
        """
        for node_id, address in running.items():
            self.see(node_id, address)
        self.running = tuple(sorted(running.keys() & self._known.keys()))
        if self.anchor == NOBODY and self.running:
            self.anchor = min(self.running, key=lambda node_id: self._known[node_id].index)
        for node_id, known in self._known.items():
            is_used = node_id in running or (node_id == self.anchor and self._has_fellows())
            if is_used is not known.is_open and not known.is_changing:
                known.is_changing = True
                Deferred.fromCoroutine(self._close(known) if known.is_open else self._open(known))

    async def _close(self, known: Stood) -> None:
        logger.warning("upstream broker %d at %s is gone: its port refuses", known.node_id, known.address)
        await known.port.suspend()
        known.is_open = known.is_changing = False

    async def _open(self, known: Stood) -> None:
        try:
            await known.port.resume()
        except CannotListen as error:
            logger.error("upstream broker %d is back, but %s", known.node_id, error)
        else:
            known.is_open = True
            logger.info("upstream broker %d is back at %s", known.node_id, known.address)
        known.is_changing = False

    def home(self, shard: int) -> int:
        """Return the broker at whose port clients find the groups of a shard; NOBODY if none runs."""
        return self.running[shard % len(self.running)] if self.running else NOBODY

    def serving(self, node_id: int | None) -> int | None:
        """Return the broker for a client that has named one, or none, at a port that brokers share; None for
        one that does not run. A client that names no known broker gets the one at which this process is
        found.
        """
        if node_id in self._known:
            return node_id if self._known[node_id].is_open else None
        open_ones = [each for each in (self.anchor, *self.running) if each in self._known]
        return next((each for each in open_ones if self._known[each].is_open), None)

    def place(self, at: int, advertised: Endpoint, listener_name: str = "") -> Place:
        """Return a function that maps brokers to addresses, for a client that reached the broker `at` by the
        address `advertised` of a listener.
        """
        of_here, names = self._known[at].index, self.names.get(listener_name)

        def place(node_id: int, address: Endpoint) -> Endpoint | None:
            known = self.see(node_id, address)
            if known is None:
                return None
            if names is not None:
                return Endpoint(names.host(node_id), advertised.port)
            return Endpoint(advertised.host, advertised.port + known.index - of_here)

        return place

    def in_place_of(self, node_id: int) -> int:
        """Return the broker at which a client of a port can log in: the port's own, or, if that does not run,
        another one. Such a client came for a coordinator.
        """
        return node_id if node_id in self.running or not self.running else self.running[0]

    def reach(self, node_id: int, place: Place) -> Endpoint | None:
        """Return where a client finds a broker, given its node id alone."""
        known = self._known.get(node_id)
        return None if known is None else place(node_id, known.address)
