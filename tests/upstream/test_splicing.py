"""A client and a broker at real sockets: what goes straight from one to the other, and what stops it."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from twisted.python.failure import Failure

from kshim.network.client_socket import ClientSocket, OutgoingSocket
from kshim.network.outgoing import TlsOutgoingSocket
from kshim.upstream import splicing
from kshim.upstream.splicing import ready
from tests.network.frames import frame
from tests.upstream.produced import produce
from tests.upstream.relay_world import World

RESPONSE = bytes(range(256)) * 8192
REQUEST = produce(2_000_000)
MOST_BYTES = 4 << 20


class Reactor:
    """Plays the turns of the sockets of one world."""

    def __init__(self) -> None:
        self.readers: set[Any] = set()
        self.writers: set[Any] = set()
        self.addReader, self.removeReader = self.readers.add, self.readers.discard
        self.addWriter, self.removeWriter = self.writers.add, self.writers.discard

    def turn(self) -> bool:
        """Do what is due. True if anything was."""
        readable, writable, _ = select.select(list(self.readers), list(self.writers), [], 0)
        for each in readable:
            self._ends(each, each.doRead() if each in self.readers else None)
        for each in writable:
            self._ends(each, each.doWrite() if each in self.writers else None)
        return bool(readable or writable)

    def _ends(self, transport: Any, why: Any) -> None:
        if why is not None:
            self.readers.discard(transport)
            self.writers.discard(transport)
            transport.connectionLost(Failure(why))


class Sockets:
    """A world whose client and broker are sockets of this test."""

    def __init__(self) -> None:
        self.reactor = Reactor()
        self.client, ours = _pair()
        self.broker, theirs = _pair()
        self._all = self.client, ours, self.broker, theirs
        self.world = World(is_connected=False, client=lambda near: self._transport(ours, near))
        self.world.near._frames.allow(MOST_BYTES)
        self.to_client = self.world.client
        self.world.ask(b"z")
        self.to_broker = self._transport(theirs, self.world.passage)
        self.world.passage.makeConnection(self.to_broker)
        self.received: dict[socket.socket, bytearray] = {self.client: bytearray(), self.broker: bytearray()}
        self.play()
        assert self.received[self.broker] == frame(b"z")
        self.received[self.broker].clear()

    def _transport(self, ours: socket.socket, protocol: Any) -> ClientSocket:
        transport = ClientSocket(ours, protocol, ours.getpeername(), None, 0, self.reactor)
        transport.startReading()
        return transport

    def play(self, *, reads: bool = True) -> None:
        """Until nothing moves any more. reads: whether client and broker read."""
        while self.reactor.turn() or (reads and self._read()):
            pass

    def _read(self) -> bool:
        moved = 0
        for end, received in self.received.items():
            try:
                data = end.recv(100_000)
            except OSError:
                continue
            received += data
            moved += len(data)
        return bool(moved)

    def send(self, end: socket.socket, data: bytes) -> None:
        """All of it, while the world plays."""
        left = memoryview(data)
        while left:
            try:
                left = left[end.send(left) :]
            except BlockingIOError:
                self.play()
        self.play()

    def close(self) -> None:
        for each in self._all:
            each.close()


def _pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection by TCP: the test's, and kshim's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        one = socket.create_connection(listening.getsockname())
        other, _ = listening.accept()
    one.setblocking(False)
    other.setblocking(False)
    return one, other


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    found = Sockets()
    yield found
    found.close()


@pytest.fixture
def spliced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes that each call of splice has moved."""
    moved: list[int] = []
    splice = os.splice

    def counted(*arguments: Any, **flags: Any) -> int:
        moved.append(splice(*arguments, **flags))
        return moved[-1]

    monkeypatch.setattr(os, "splice", counted)
    return moved


def test_the_rest_of_a_request_and_of_a_response_go_straight_on(sockets: Sockets, spliced: list[int]) -> None:
    requests = b"".join(map(frame, (b"a", REQUEST, b"b", REQUEST)))
    sockets.send(sockets.client, requests)
    assert sockets.received[sockets.broker] == requests
    assert sum(spliced) > 2 * 2 * 1_500_000
    responses = b"".join(map(frame, (b"A", RESPONSE, RESPONSE, b"B")))
    spliced.clear()
    sockets.send(sockets.broker, responses)
    assert sockets.received[sockets.client] == responses
    assert sum(spliced) > 2 * 2 * 1_500_000
    assert not sockets.world.unread.bytes


def test_where_there_is_no_splice_all_comes_here(
    sockets: Sockets, spliced: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splicing, "_CAN_SPLICE", False)
    sockets.send(sockets.client, frame(REQUEST))
    assert sockets.received[sockets.broker] == frame(REQUEST)
    assert not spliced


def test_a_response_before_which_another_reply_has_to_leave_waits(sockets: Sockets) -> None:
    sockets.send(sockets.client, frame(b"k") + frame(b"a"))
    left = len(frame(RESPONSE)) - sockets.broker.send(frame(RESPONSE))
    sockets.play()
    assert not sockets.received[sockets.client]
    sockets.world.ours[b"k"].answer_alone(b"K")
    sockets.send(sockets.broker, RESPONSE[len(RESPONSE) - left :] if left else b"")
    assert sockets.received[sockets.client] == frame(b"K") + frame(RESPONSE)


@pytest.mark.parametrize("sender", ["client", "broker"])
def test_whoever_does_not_read_stops_the_other_end(sockets: Sockets, sender: str) -> None:
    """And then gets all of it."""
    to_sender = sockets.to_client
    if sender == "broker":
        to_sender = sockets.to_broker
        sockets.send(sockets.client, b"".join(map(frame, [b"a"] * 40)))
        sockets.received[sockets.broker].clear()
    end, other = (sockets.client, sockets.broker) if sender == "client" else (sockets.broker, sockets.client)
    data = frame(REQUEST if sender == "client" else RESPONSE) * 40
    left = memoryview(data)
    while to_sender in sockets.reactor.readers:
        with suppress(BlockingIOError):
            left = left[end.send(left) :]
        sockets.play(reads=False)
    held = sockets.to_client._unsent_bytes + sockets.to_broker._unsent_bytes
    assert held < splicing.LEAST_BYTES
    while left:
        try:
            left = left[end.send(left) :]
        except BlockingIOError:
            sockets.play()
    sockets.play()
    assert sockets.received[other] == data


def test_what_a_lost_connection_did_not_take_reaches_nobody_else(sockets: Sockets) -> None:
    """The pipe is shared by all."""
    sockets.send(sockets.client, frame(REQUEST)[:100_000])
    sockets.broker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sockets.broker.close()
    del sockets.received[sockets.broker]
    sockets.client.send(REQUEST[100_000:400_000])
    sockets.reactor.readers.discard(sockets.to_broker)  # the loss is found by who sends
    sockets.play()
    other = Sockets()
    other.send(other.client, frame(REQUEST))
    assert other.received[other.broker] == frame(REQUEST)
    other.close()


def test_an_end_in_the_middle_of_a_request_is_passed_on(sockets: Sockets) -> None:
    sockets.send(sockets.client, frame(REQUEST)[:1_000_000])
    sockets.client.close()
    del sockets.received[sockets.client]
    sockets.play()
    assert sockets.received[sockets.broker] == frame(REQUEST)[:1_000_000]
    assert sockets.broker.recv(1) == b""


def test_an_end_in_the_middle_of_a_response_is_passed_on(sockets: Sockets) -> None:
    sockets.send(sockets.client, frame(b"a"))
    sockets.send(sockets.broker, frame(RESPONSE)[:1_000_000])
    sockets.broker.close()
    del sockets.received[sockets.broker]
    sockets.play()
    assert sockets.received[sockets.client] == frame(RESPONSE)[:1_000_000]
    assert sockets.client.recv(1) == b""


def test_a_quiet_request_costs_nothing_but_its_connection(sockets: Sockets) -> None:
    sockets.send(sockets.client, frame(REQUEST)[:200_000])
    held = sockets.to_client._unsent_bytes + sockets.to_broker._unsent_bytes
    assert held == 0
    assert sockets.world.unread.bytes < 70_000


@pytest.mark.parametrize(("made", "is_ready"), [(OutgoingSocket, True), (TlsOutgoingSocket, False)])
def test_bytes_are_spliced_into_plain_sockets_only(made: type, is_ready: bool) -> None:
    transport = made.__new__(made)
    transport.connected, transport.disconnecting, transport._unsent_bytes = True, False, 0
    assert (ready(transport) is transport) == is_ready
