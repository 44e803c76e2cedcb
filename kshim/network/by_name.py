"""One port for several brokers: the server name of the TLS handshake says which one a client means.

The port makes a connection of its own for each client, before the handshake. Once the client has named a
broker, that broker makes another one, which goes on with the transport, as if the client had come to a port
of the broker: its limits, its far side and its gates count. No request has come before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from kshim.network.connection import Connection
    from kshim.network.connections import Entrance
    from kshim.network.tls import Secured

ByName = Callable[[str | None], "Entrance | None"]
"""Finds the broker that a client means by a server name, or by none; returns None if it does not run."""


def moved(find: ByName, protocol: Secured, server_name: str | None) -> Secured:
    """Return the connection that goes on with a client: one of the broker that it names. If there is none,
    the client's connection is closed.
    """
    connection = cast("Connection", protocol)
    entrance = find(server_name)
    if entrance is None:
        connection.refuse_lost(f"{server_name} is a broker that does not run")
        return protocol
    transport = connection.transport
    further: Any = entrance.buildProtocol(transport.getPeer())
    if further is None:
        connection.close()
        return protocol
    connection.leave()
    further.makeConnection(transport)
    return cast("Secured", further)
