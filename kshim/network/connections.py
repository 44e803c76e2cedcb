"""The open connections of one broker: which are let in, which wait for a place, and how all are closed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory

from kshim.network.addresses import unmapped
from kshim.network.connection import Connection
from kshim.network.pace import Pace
from kshim.network.places import Places
from kshim.network.shared import Shared
from kshim.network.states import Wait
from kshim.storage.clock import Timer, TimerClock

if TYPE_CHECKING:
    from kshim.storage.reactor import Port


logger = logging.getLogger(__name__)

# How long a client may take to read its last replies when the server stops.
CLOSE_S = 1.0
LOOK_S = 1.0
"""While connections wait, how often to look for more places."""


class Entrance(Factory):
    """Makes the connections of one listener, and lets them in as fast as the rates allow."""

    noisy = False

    def __init__(self, shared: Shared, connections: Connections) -> None:
        self.shared = shared
        self.connections = connections
        self.port: Port | None = None
        """The port, which accepts nothing while connections wait; None if it is not open."""
        self._arrived: deque[Connection] = deque()  # the first waits for its time, the others for the first

    def buildProtocol(self, addr: object) -> Connection | None:
        """Make a connection from `addr`; None makes Twisted close it."""
        return self.connections.new(addr, self.shared, self._arrives)

    def accept(self) -> None:
        """Accept connections, unless some wait."""
        if self.port is not None:
            accept = (
                self.port.stopReading if self._arrived or self.connections.is_full else self.port.startReading
            )
            accept()

    def _arrives(self, connection: Connection) -> None:
        self.connections.add(connection)
        self._arrived.append(connection)
        if len(self._arrived) > 1:
            connection.wait(Wait.TURN)
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Serve arrived connections, until one must wait."""
        while self._arrived:
            delay_ms = self.connections.pace.delay_ms(self.shared.listener_name)
            if delay_ms:
                self._arrived[0].wait(Wait.TURN)
                self.shared.clock.callLater(delay_ms / 1000, self._waited)
                self.accept()
                return
            self._let_in()

    def _waited(self) -> None:
        self._let_in()
        self._go_on()
        self.accept()

    def _let_in(self) -> None:
        """Serve the first arrived connection. If too many came from its address, close it after a while
        instead.
        """
        connection = self._arrived.popleft()
        host = unmapped(connection.client.address.host)
        refusal_ms = self.connections.pace.refusal_ms(self.shared.listener_name, host)
        if refusal_ms:
            level = min(self.shared.once.level((host, "connection_creation_rate")), logging.INFO)
            logger.log(
                level,
                "closed the connection of %s: too many new connections a second",
                connection.client.address,
            )
            connection.wait(Wait.CLOSE)
            self.shared.clock.callLater(refusal_ms / 1000, self.connections.refuse, connection)
        else:
            self.connections.let_in(connection)


class Connections:
    """The connections of one broker, until they are gone."""

    def __init__(self, clock: TimerClock, places: Places, pace: Pace) -> None:
        self._clock = clock
        self._places = places
        self.pace = pace
        self._outside: set[Connection] = set()  # not let in yet
        self._waiting: dict[Connection, None] = {}  # wait for a place, in the order of their arrival
        self._timer: Timer | None = None
        self._all_gone: Deferred[None] | None = None
        self.connections: set[Connection] = set()
        self.entrances: list[Entrance] = []

    def new(self, addr: Any, shared: Shared, made: Callable[[Connection], None]) -> Connection | None:
        """Make a connection from `addr`; None if that address has too many."""
        most = self._places.take(unmapped(addr.host))
        if most is None:
            return Connection(shared, made, self._lost)
        logger.warning(
            "closed the connection of %s:%d: its address has %d connections already",
            addr.host,
            addr.port,
            most,
        )
        return None

    @property
    def is_full(self) -> bool:
        """True if connections wait for a place."""
        return bool(self._waiting)

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

    def add(self, connection: Connection) -> None:
        """Note a connection that has arrived."""
        self.connections.add(connection)
        self._outside.add(connection)

    def let_in(self, connection: Connection) -> None:
        """Serve a connection, if it is still open. If there is no place, it waits for one."""
        if connection not in self._outside:
            return
        self._outside.discard(connection)
        if self._free() < 0:
            self._waiting[connection] = None
            connection.wait(Wait.PLACE)
            self._seat()
        connection.go_on(Wait.TURN)

    def refuse(self, connection: Connection) -> None:
        """Close a connection that was not let in."""
        if connection in self._outside:
            connection.close()

    def _lost(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._outside.discard(connection)
        self._waiting.pop(connection, None)
        self._places.leave(unmapped(connection.client.address.host))
        if self._waiting:
            self._seat()
        if self._all_gone is not None and not self.connections:
            gone, self._all_gone = self._all_gone, None
            gone.callback(None)

    def _free(self) -> int:
        """Return how many places are free; if negative, how many connections are served beyond the limit."""
        return self._places.most - len(self.connections) + len(self._outside) + len(self._waiting)

    def _seat(self) -> None:
        """Serve waiting connections while there are places. If the limit was lowered, close the least active
        ones.
        """
        free = self._free()
        served = self.connections - self._waiting.keys() - self._outside
        for connection in sorted(served, key=lambda each: each.active_at)[: max(0, -free)]:
            connection.close()
        for connection in list(self._waiting)[: max(0, free)]:
            del self._waiting[connection]
            connection.go_on(Wait.PLACE)
        if self._waiting and self._timer is None:
            self._timer = self._clock.callLater(LOOK_S, self._look)
        for entrance in self.entrances:
            entrance.accept()

    def _look(self) -> None:
        """Check whether the limit was changed."""
        self._timer = None
        if self._waiting:
            self._seat()
