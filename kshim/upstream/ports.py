"""Opens kshim's ports in front of an upstream: for each broker, each listener's port plus the broker's
index. Where the brokers have names of their own, a listener has one port for all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import LAST_PORT
from kshim.network.listeners import BrokerListeners, CannotListen

if TYPE_CHECKING:
    from kshim.network.beyond import Beyond, Near
    from kshim.network.connections import Entrance
    from kshim.network.listeners import Listener
    from kshim.server.ports import Ports
    from kshim.upstream.brokers import Brokers
    from kshim.upstream.here import Here


logger = logging.getLogger(__name__)


class UpstreamPorts:
    """Opens a broker's ports when it is first seen."""

    def __init__(self, ports: Ports[Here], brokers: Brokers) -> None:
        """brokers: know which one a client means at a port that all share."""
        self._ports = ports
        self._brokers = brokers
        self._first: dict[str, Endpoint] = {}
        """Each listener's address at index 0, by listener name. For port 0 the system has chosen the port."""

    def open(self, node_id: int, index: int, new_beyond: Callable[[Near], Beyond]) -> BrokerListeners:
        """Accept connections for a broker. `new_beyond` makes their far sides. Raises CannotListen."""
        listeners = self._ports.add(replace(self._ports.broker, node_id=node_id), index)
        try:
            for listener in listeners:
                listener.shared.new_beyond = new_beyond
                self._open(listener, index)
        except CannotListen:
            self._ports.remove(node_id)
            raise
        return listeners

    def _open(self, listener: Listener, index: int) -> None:
        if listener.shares_port:
            listener.open(self._for_all(listener.name))
            return
        first = self._first.get(listener.name)
        address = listener.address if first is None else Endpoint(first.host, first.port + index)
        if address.port > LAST_PORT:
            raise CannotListen(f"cannot listen at port {address.port}: the last port is {LAST_PORT}")
        listener.open(address)
        self._first[listener.name] = Endpoint(listener.address.host, listener.address.port - index)

    def _for_all(self, name: str) -> Endpoint:
        """Open the port that all brokers share at a listener, with the first broker; return its address.
        Raises CannotListen.
        """
        if name not in self._ports.for_all:
            listener = self._ports.add_for_all(name, partial(self._entrance, name))
            listener.open(listener.address)
        return self._ports.for_all[name].address

    def _entrance(self, listener_name: str, server_name: str | None) -> Entrance | None:
        """Find the entrance of the broker that a client means by a server name."""
        named = server_name and self._brokers.names[listener_name].node_id(server_name)
        node_id = self._brokers.serving(named if isinstance(named, int) else None)
        if node_id is None:
            return None
        return next(each.entrance for each in self._ports.listeners[node_id] if each.name == listener_name)

    def reached(self, node_id: int) -> dict[str, Endpoint]:
        """Where clients reach the ports of a broker, by listener name."""
        listeners = self._ports.listeners[node_id]
        return {each.name: each.shared.advertised or each.address for each in listeners}

    def warn_of_nowhere(self, node_id: int) -> None:
        """Warn if this process listens at all addresses and does not name one for clients. Apache Kafka does
        not start then.
        """
        nowhere = [each for each in self.reached(node_id).values() if each.is_nowhere]
        if nowhere:
            logger.warning(
                "listening at %s without --advertise: clients are told the address by which they have"
                " come, and no other kshim can share the groups; name the address for clients"
                " (advertised.listeners)",
                nowhere[0],
            )
