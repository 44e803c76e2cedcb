"""A relay between a client and a broker, both in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.callers import Client
from kshim.callers.once import Once
from kshim.network.connection import Connection
from kshim.network.gate import GateContext
from kshim.network.intake import Intake
from kshim.network.shared import Shared
from kshim.turns import Turn
from kshim.turns.promise import Promise
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread
from kshim.upstream.passage import Passage
from kshim.upstream.relay import Relay, Relays
from tests.network.frames import frame
from tests.network.transport import Transport as ClientTransport

MOST_BYTES = 1 << 20
OWN = b"own"
"""The topic of kshim."""


class Transport(ClientTransport):
    """Counts what is held while its reader does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True
        self.bufferSize = 0
        self.connected_here = False

    def send_at_once(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            self.write(bytes(piece))
        if not self.is_read and self.producer is not None:
            self.producer.pauseProducing()

    writeSequence = send_at_once  # noqa: N815

    def read(self) -> None:
        self.is_read = True
        if self.producer is not None:
            self.producer.resumeProducing()

    def taken(self) -> bytes:
        value = bytes(self.value())
        self.clear()
        return value


class World:
    """Requests that begin with "k" are answered by kshim, others by the broker; "z" has no answer."""

    def __init__(
        self,
        *,
        is_connected: bool = True,
        client: Callable[[Connection], Any] | None = None,
        gates: Callable[[World], GateContext] | None = None,
    ) -> None:
        """client: makes the transport to the client. gates: makes what a client has to pass first."""
        self.clock = Clock()
        rounds = Rounds(self.clock)
        self.unread = Unread(self.clock, rounds)
        self.ours: dict[bytes, Deferred[bytes]] = {}
        self.passages: list[Passage] = []
        self.broker = Transport()
        shared = Shared(
            answer=self.answer,
            clock=self.clock,
            rounds=rounds,
            unread=self.unread,
            intake=Intake(self.clock, self.unread, 1 << 24),
            once=Once(self.clock),
            max_request_bytes=MOST_BYTES,
        )
        self.relays = Relays(self.new_passage, OWN.__eq__)
        shared.new_beyond = partial(self.relays.new, 1)
        shared.gates = None if gates is None else gates(self)
        self.near = Connection(shared, lambda _: None, lambda _: None)
        self.client: Any = Transport() if client is None else client(self.near)
        self.near.makeConnection(self.client)
        if is_connected:
            self.ask(b"z")
            self.connect()
            assert self.broker.taken() == frame(b"z")

    def new_passage(self, node_id: int, relay: Relay) -> Passage:
        self.passages.append(Passage(relay, "b:1", 1 << 30, self.clock))
        return self.passages[-1]

    @property
    def passage(self) -> Passage:
        (one,) = self.passages
        return one

    def connect(self) -> None:
        self.passage.makeConnection(self.broker)

    def answer(self, data: bytes | bytearray, client: Client, turn: Turn) -> Any:
        if data[:1] == b"k":
            self.ours[bytes(data)] = Promise()
            return self.ours[bytes(data)]
        passage = self.relays.by_client[client].passage
        if data[:1] == b"z":
            passage.send(data)
            return None
        return passage.forward(data, turn, is_read=data[:1] == b"w")

    def ask(self, *requests: bytes) -> None:
        self.near.dataReceived(b"".join(map(frame, requests)))

    def respond(self, *responses: bytes) -> None:
        self.passage.dataReceived(b"".join(map(frame, responses)))
