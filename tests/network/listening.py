"""A listener by hand, and the other ends of its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kshim.callers.once import Once
from kshim.cluster.client_quotas import Entity
from kshim.configs.config import PROPERTIES, Config
from kshim.network.connection import Connection
from kshim.network.connections import Connections, Entrance
from kshim.network.intake import Intake
from kshim.network.pace import AddressRates, Pace
from kshim.network.places import Places
from kshim.network.shared import Shared
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread
from tests.network.transport import Transport

HOST = "10.0.0.7"
MEMORY = 1 << 20


class Port:
    """A port that connections arrive at."""

    reads = True

    def startReading(self) -> None:  # noqa: N802
        self.reads = True

    def stopReading(self) -> None:  # noqa: N802
        self.reads = False


class Quotas:
    """The rates at which addresses may connect."""

    def watch(self, look: Callable[[dict[Entity, dict[str, float]]], None]) -> None:
        self._look = look

    def set(self, host: str | None, rate: float | None) -> None:
        self._look({(("ip", host),): {} if rate is None else {"connection_creation_rate": rate}})


class Listening:
    """A listener whose limits are `limits`; every request is answered at once."""

    def __init__(self, **limits: str) -> None:
        self.config = Config()
        self.quotas = Quotas()
        self.limits = {name: each.default for name, each in PROPERTIES.items()}
        self.limit(**limits)
        self.clock = Clock()
        rounds = Rounds(self.clock)
        self.unread = Unread(self.clock, rounds)
        self.resolving: dict[str, Deferred[list[str]]] = {}
        self.requests: list[bytes] = []
        shared = Shared(
            answer=self._answer,
            clock=self.clock,
            rounds=rounds,
            unread=self.unread,
            intake=Intake(self.clock, self.unread, MEMORY),
            once=Once(self.clock),
            max_request_bytes=MEMORY,
        )
        text = self.limits.__getitem__
        self.addresses = AddressRates(self.quotas, self._resolve)
        pace = Pace(text, self.config, self.addresses, self.clock)
        self.connections = Connections(self.clock, Places(text, self._resolve), pace)
        self.entrance = Entrance(shared, self.connections)
        self.port = self.entrance.port = Port()
        self.connections.entrances.append(self.entrance)

    def limit(self, **limits: str) -> None:
        self.limits.update((name.replace("_", "."), text) for name, text in limits.items())

    def connect(self, host: str = HOST) -> Peer | None:
        connection = self.entrance.buildProtocol(IPv4Address("TCP", host, 51000))
        return Peer(connection, host) if connection is not None else None

    def served(self, *hosts: str) -> list[bool]:
        """True for each address from which a connection would be accepted."""
        peers = [self.connect(host) for host in hosts]
        for peer in peers:
            if peer is not None:
                peer.leave()
        return [peer is not None for peer in peers]

    def _answer(self, request: Any, *_: Any) -> bytes:
        self.requests.append(bytes(request))
        return b""

    def _resolve(self, host: str) -> Deferred[list[str]]:
        self.resolving[host] = Deferred()
        return self.resolving[host]


class Peer:
    """The other end of a connection."""

    def __init__(self, connection: Connection, host: str) -> None:
        self.connection = connection
        self.transport = Transport()
        self.transport.peerAddr = IPv4Address("TCP", host, 51000)
        connection.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        self.connection.dataReceived(data)

    def leave(self) -> None:
        self.connection.connectionLost(Failure(ConnectionDone()))

    @property
    def is_read(self) -> bool:
        return self.transport.reads

    @property
    def is_closed(self) -> bool:
        return bool(self.transport.disconnecting)


def connected(listening: Listening, host: str = HOST) -> Peer:
    peer = listening.connect(host)
    assert peer is not None
    return peer
