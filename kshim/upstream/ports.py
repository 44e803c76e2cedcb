"""kshim's listening ports in front of an upstream: for each broker, each listener's port plus the broker's
index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kshim.callers.once import Once
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import LAST_PORT
from kshim.network.beyond import Beyond
from kshim.network.connection import Connection, Dispatch
from kshim.network.listeners import BrokerListeners, CannotListen, new_listeners
from kshim.network.places import Limits
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread

if TYPE_CHECKING:
    from kshim.cluster.settings import QuotaTable
    from kshim.network.gate import GateContext
    from kshim.storage.reactor import Reactor


class Ports:
    """Opens the ports, and keeps the listeners."""

    def __init__(
        self,
        config: Config,
        reactor: Reactor,
        rounds: Rounds,
        unread: Unread,
        once: Once,
        limits: Limits,
        quotas: QuotaTable,
    ) -> None:
        self._config = config
        self._reactor = reactor
        self._rounds = rounds
        self._unread = unread
        self._once = once
        self._limits = limits
        self._quotas = quotas
        self.gates: Mapping[str, GateContext] = {}
        """The gates that clients must pass first, by listener name; set before a port is opened."""
        self._first: dict[str, Endpoint] = {}
        """Each listener's address at index 0, by listener name. For port 0 the system has chosen the port."""
        self.listeners: dict[int, BrokerListeners] = {}
        """The listeners of each broker, by node id."""

    def addresses(self) -> dict[str, list[Endpoint]]:
        """All brokers' addresses in the order of their ports, by listener name."""
        found = [listeners.addresses for listeners in self.listeners.values()]
        names = found[0] if found else ()
        return {name: sorted((each[name] for each in found), key=lambda it: it.port) for name in names}

    def reached(self, node_id: int) -> dict[str, Endpoint]:
        """Where clients reach the ports of a broker, by listener name."""
        return {each.name: each.shared.advertised or each.address for each in self.listeners[node_id]}

    def open(
        self, node_id: int, index: int, answer: Dispatch, new_beyond: Callable[[Connection], Beyond]
    ) -> BrokerListeners:
        """Accept connections for a broker. `new_beyond` makes their far sides. Raises CannotListen."""
        number = self._config.node_id + index
        shared = self._reactor, self._rounds, self._unread, self._once
        answers, limits = {number: answer}, self._limits
        found = new_listeners(answers, self._config, *shared, lambda _: limits, self._quotas, self.gates)
        listeners = found[number]
        for listener in listeners:
            listener.shared.new_beyond = new_beyond
            first = self._first.get(listener.name)
            address = listener.address if first is None else Endpoint(first.host, first.port + index)
            if address.port > LAST_PORT:
                raise CannotListen(f"cannot listen at port {address.port}: the last port is {LAST_PORT}")
            listener.open(address)
            self._first[listener.name] = Endpoint(listener.address.host, listener.address.port - index)
        self.listeners[node_id] = listeners
        return listeners
