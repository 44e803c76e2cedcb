"""Opens kshim's ports in front of an upstream: for each broker, each listener's port plus the broker's
index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import LAST_PORT
from kshim.network.listeners import BrokerListeners, CannotListen

if TYPE_CHECKING:
    from kshim.network.beyond import Beyond, Near
    from kshim.network.listeners import Listener
    from kshim.server.ports import Ports
    from kshim.upstream.here import Here


class UpstreamPorts:
    """Opens a broker's ports when it is first seen."""

    def __init__(self, ports: Ports[Here]) -> None:
        self._ports = ports
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
        first = self._first.get(listener.name)
        address = listener.address if first is None else Endpoint(first.host, first.port + index)
        if address.port > LAST_PORT:
            raise CannotListen(f"cannot listen at port {address.port}: the last port is {LAST_PORT}")
        listener.open(address)
        self._first[listener.name] = Endpoint(listener.address.host, listener.address.port - index)

    def reached(self, node_id: int) -> dict[str, Endpoint]:
        """Where clients reach the ports of a broker, by listener name."""
        listeners = self._ports.listeners[node_id]
        return {each.name: each.shared.advertised or each.address for each in listeners}
