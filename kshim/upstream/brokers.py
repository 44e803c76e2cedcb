"""The brokers of the upstream: where each is, at which port here it stands, and whether that is open.

The upstream is asked who runs every LOOK_S, by whichever broker answers. A broker that is not among them is
refused here, too; one that is seen for the first time gets the next port.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from twisted.internet.defer import Deferred

from kshim.configs.endpoint import Endpoint
from kshim.network.listeners import CannotListen
from kshim.upstream.indexes import Indexes
from kshim.upstream.rewriting import Place

logger = logging.getLogger(__name__)

NOBODY = -1


class Port(Protocol):
    """The listening ports of one broker, as `BrokerListeners` has them."""

    def suspend(self) -> Deferred[None]:
        """Refuse connections, and close those that there are."""

    def resume(self) -> Deferred[None]:
        """Accept connections again. Errbacks CannotListen."""


@dataclass(slots=True)
class Stood:
    """One broker that kshim stands for."""

    node_id: int
    index: int
    address: Endpoint
    """The broker's own."""
    port: Port
    is_open: bool = True
    is_changing: bool = False
    """Whether it is being opened or closed; what was told meanwhile is told again."""


OpenPort = Callable[[int, int], Port]
"""Opens a port: (node id, index). Raises CannotListen."""


class Brokers:
    """All that were ever seen."""

    def __init__(
        self, indexes: Indexes, open_port: OpenPort, has_fellows: Callable[[], bool] = lambda: False
    ) -> None:
        """has_fellows: whether other kshim are in front of the upstream."""
        self._has_fellows = has_fellows
        self._indexes = indexes
        self._open_port = open_port
        self._known: dict[int, Stood] = {}
        self.faults: dict[int, str] = {}
        """Why brokers have no port, by node id."""
        self.running: tuple[int, ...] = ()
        """The node ids of those that run, as the upstream told last."""
        self.anchor = NOBODY
        """The broker at whose ports other kshim find this one: they stay open whether or not it runs."""

    def address(self, node_id: int) -> Endpoint:
        """Where an upstream broker is."""
        return self._known[node_id].address

    def addresses(self) -> list[Endpoint]:
        """Of all brokers, those first that run."""
        known = sorted(self._known.values(), key=lambda each: each.node_id not in self.running)
        return [each.address for each in known]

    def see(self, node_id: int, address: Endpoint) -> Stood | None:
        """Note where a broker is. None if no port can be opened for it."""
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

    def told(self, running: Mapping[int, Endpoint]) -> None:
        """The upstream has told which brokers run. Their ports are open, those of others refuse."""
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
        """The broker at whose port clients find the groups of a shard; NOBODY if none runs."""
        return self.running[shard % len(self.running)] if self.running else NOBODY

    def place(self, at: int, advertised: Endpoint) -> Place:
        """Where a client finds brokers that has reached the broker `at` by the address `advertised`."""
        of_here = self._known[at].index

        def place(node_id: int, address: Endpoint) -> Endpoint | None:
            known = self.see(node_id, address)
            if known is None:
                return None
            return Endpoint(advertised.host, advertised.port + known.index - of_here)

        return place

    def reach(self, node_id: int, place: Place) -> Endpoint | None:
        """Where a client finds a broker by its node id alone."""
        known = self._known.get(node_id)
        return None if known is None else place(node_id, known.address)
