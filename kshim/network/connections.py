"""The open connections of one broker: who may have one, who waits for a place, and how all are closed."""

from __future__ import annotations

import logging
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory

from kshim.network.addresses import unmapped
from kshim.network.connection import Connection, Shared
from kshim.network.places import Places
from kshim.storage.clock import Clock

logger = logging.getLogger(__name__)

# How long a client may take to read its last replies when the server stops.
CLOSE_S = 1.0
LOOK_S = 1.0
"""How often to look, while connections wait, whether there are more places."""


class Entrance(Factory):
    """Makes the connections that arrive at one listener."""

    noisy = False

    def __init__(self, shared: Shared, connections: Connections) -> None:
        self.shared = shared
        self.connections = connections

    def buildProtocol(self, addr: Any) -> Connection | None:
        """A connection from `addr`; None closes it."""
        return self.connections.new(addr, self.shared)


class Connections:
    """Knows the connections until they are gone."""

    def __init__(self, clock: Clock, places: Places) -> None:
        self._clock = clock
        self._places = places
        self._waiting: dict[Connection, None] = {}  # beyond the last place, in the order of their arrival
        self._timer: Any = None
        self._all_gone: Deferred[None] | None = None
        self.connections: set[Connection] = set()
        self.ports: list[Any] = []
        """Where they arrive; nothing is accepted there while connections wait for a place."""

    def new(self, addr: Any, shared: Shared) -> Connection | None:
        """A connection from `addr`; None if that address has too many."""
        most = self._places.take(unmapped(addr.host))
        if most is None:
            return Connection(shared, self._made, self._lost)
        logger.warning(
            "closed the connection of %s:%d: its address has %d already", addr.host, addr.port, most
        )
        return None

    def drain(self) -> None:
        """Read no further requests."""
        for connection in list(self.connections):
            connection.drain()

    def close(self) -> Deferred[None]:
        """Close all connections. Fires when they are gone.

        A client that has not read its last replies within CLOSE_S is disconnected.
        """
        gone: Deferred[None] = Deferred()
        if not self.connections:
            gone.callback(None)
            return gone
        self._all_gone = gone
        abort = self._clock.callLater(CLOSE_S, self._abort)
        gone.addCallback(lambda _: abort.cancel() if abort.active() else None)
        for connection in list(self.connections):
            connection.close()
        return gone

    def _abort(self) -> None:
        for connection in list(self.connections):
            connection.transport.abortConnection()

    def _made(self, connection: Connection) -> None:
        self.connections.add(connection)
        if self._free() < 0:
            self._waiting[connection] = None
            connection.wait()
            self._seat()

    def _lost(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._waiting.pop(connection, None)
        self._places.leave(unmapped(connection.client.address.host))
        if self._waiting:
            self._seat()
        if self._all_gone is not None and not self.connections:
            gone, self._all_gone = self._all_gone, None
            gone.callback(None)

    def _free(self) -> int:
        """How many places are free; below zero, how many too many connections are served."""
        return self._places.most - len(self.connections) + len(self._waiting)

    def _seat(self) -> None:
        """Serve those who wait, as far as there are places; close the least active where they have become
        fewer.
        """
        free = self._free()
        served = self.connections - self._waiting.keys()
        for connection in sorted(served, key=lambda each: each.active_at)[: max(0, -free)]:
            connection.close()
        for connection in list(self._waiting)[: max(0, free)]:
            del self._waiting[connection]
            connection.go_on()
        if self._waiting and self._timer is None:
            self._timer = self._clock.callLater(LOOK_S, self._look)
        for port in self.ports:
            accept = port.stopReading if self._waiting else port.startReading
            accept()

    def _look(self) -> None:
        """Look whether the limit was changed."""
        self._timer = None
        if self._waiting:
            self._seat()
