"""A client's socket, on a real pair of sockets: what it sends, when, and when it asks for no more."""

import socket
import weakref
from collections.abc import Callable, Iterator

import pytest
from twisted.internet import main
from twisted.internet.protocol import Protocol

from kshim.network.client_socket import MOST_PIECES, ClientSocket

MORE_THAN_A_SOCKET_HOLDS = 64 * 1024 * 1024


class Reactor:
    """Knows who wants to write; the test plays its turns."""

    def __init__(self) -> None:
        self.writers: set[object] = set()

    def addReader(self, reader: object) -> None:  # noqa: N802
        pass

    def removeReader(self, reader: object) -> None:  # noqa: N802
        pass

    def addWriter(self, writer: object) -> None:  # noqa: N802
        self.writers.add(writer)

    def removeWriter(self, writer: object) -> None:  # noqa: N802
        self.writers.discard(writer)


class Producer(Protocol):
    """Receives `large` in its own memory, and all else in chunks."""

    paused = False

    def __init__(self) -> None:
        self.received = b""
        self.large = memoryview(b"")
        self.arrived = 0

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        if self.large:
            self.arrived = arrived()
        return self.large or None

    def filled(self, received: int) -> None:
        self.received += self.large[:received]
        self.large = self.large[received:]

    def pauseProducing(self) -> None:
        self.paused = True

    def resumeProducing(self) -> None:
        self.paused = False

    def stopProducing(self) -> None:
        pass


class Piece(bytearray):
    """Bytes that can be watched."""


class Pair:
    def __init__(self) -> None:
        ours, self.client = socket.socketpair()
        self.client.settimeout(10)
        self.reactor = Reactor()
        self.producer = Producer()
        self.transport = ClientSocket(ours, self.producer, ("peer", 1), None, 0, self.reactor)
        self.transport.registerProducer(self.producer, streaming=True)
        self.lost: BaseException | None = None

    @property
    def wants_to_write(self) -> bool:
        return self.transport in self.reactor.writers

    def read(self, size: int) -> bytes:
        """The bytes that the client receives while the reactor turns."""
        received = bytearray()
        while len(received) < size:
            received += self.client.recv(1 << 20)
            if self.wants_to_write:
                self.lost = self.transport.doWrite()
        return bytes(received)


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.client.close()
    pair.transport.socket.close()


def test_what_is_sent_leaves_at_once(pair: Pair) -> None:
    pair.transport.send_at_once([b"one", b"", b"two"])
    assert pair.client.recv(100) == b"onetwo"
    assert not pair.wants_to_write


def test_what_is_written_leaves_with_the_rest_of_the_turn(pair: Pair) -> None:
    pair.transport.write(b"one")
    pair.transport.writeSequence([b"two"])
    pair.client.setblocking(False)
    with pytest.raises(BlockingIOError):
        pair.client.recv(100)
    pair.transport.send_at_once([b"three"])
    pair.transport.doWrite()
    assert pair.client.recv(100) == b"onetwothree"
    assert not pair.wants_to_write


def test_more_than_the_socket_holds_leaves_as_the_client_reads(pair: Pair) -> None:
    pieces = [bytes([index]) * 1_000_000 for index in range(MORE_THAN_A_SOCKET_HOLDS // 1_000_000)]
    whole = b"".join(pieces) + b"end"
    pair.transport.send_at_once(pieces)
    assert pair.producer.paused
    pair.transport.send_at_once([b"end"])
    assert pair.read(len(whole)) == whole
    assert not pair.producer.paused
    assert not pair.wants_to_write


def test_more_pieces_than_the_system_takes_at_once(pair: Pair) -> None:
    pieces = [b"%020d" % index for index in range(3 * MOST_PIECES)]
    pair.transport.send_at_once(pieces)
    assert pair.read(20 * len(pieces)) == b"".join(pieces)


def test_what_was_sent_is_not_kept(pair: Pair) -> None:
    """A client that stops reading holds what it has not got, not what it has."""
    pieces = [Piece(1_000_000) for _ in range(64)]
    pair.transport.send_at_once(pieces)
    kept = [weakref.ref(piece) for piece in pieces]
    pieces.clear()
    pair.read(16_000_000)
    assert sum(piece() is not None for piece in kept) <= 48


def test_it_closes_when_all_is_sent(pair: Pair) -> None:
    pair.transport.send_at_once([bytes(MORE_THAN_A_SOCKET_HOLDS)])
    pair.transport.unregisterProducer()
    pair.transport.loseConnection()
    assert pair.transport.doWrite() is None
    pair.read(MORE_THAN_A_SOCKET_HOLDS)
    assert pair.lost is main.CONNECTION_DONE


def test_a_lost_client_is_found_in_the_reactor_s_turn(pair: Pair) -> None:
    pair.client.close()
    pair.transport.send_at_once([b"lost"])
    assert pair.wants_to_write
    assert pair.transport.doWrite() is main.CONNECTION_LOST


def test_a_small_request_is_a_chunk(pair: Pair) -> None:
    pair.client.sendall(b"small")
    assert pair.transport.doRead() is None
    assert pair.producer.received == b"small"
    assert pair.transport.doRead() is None, "nothing is there"


def test_a_large_request_is_received_where_it_is_to_lie(pair: Pair) -> None:
    large = bytes(range(256)) * 400
    pair.producer.large = memoryview(bytearray(len(large)))
    pair.client.sendall(large + b"more")
    assert pair.transport.doRead() is None
    assert pair.producer.received == large
    assert pair.producer.arrived == len(large) + 4
    assert pair.transport.doRead() is None
    assert pair.producer.received == large + b"more"


def test_a_turn_goes_on_while_there_is_more_of_a_large_request(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair.transport, "bufferSize", 1000)
    rooms = [memoryview(bytearray(1000)), memoryview(bytearray(5000))]
    monkeypatch.setattr(pair.producer, "room", lambda arrived: rooms[0] if pair.producer.received else None)
    monkeypatch.setattr(pair.producer, "filled", lambda received: rooms.pop(0))
    pair.client.sendall(bytes(4000))
    assert pair.transport.doRead() is None
    assert pair.producer.received == bytes(1000)
    assert rooms == []
    with pytest.raises(BlockingIOError):
        pair.transport.socket.recv(1)


@pytest.mark.parametrize("large", [b"", bytes(100)], ids=["small", "large"])
def test_a_client_that_leaves(pair: Pair, large: bytes) -> None:
    pair.producer.large = memoryview(bytearray(large))
    pair.client.close()
    assert pair.transport.doRead() is main.CONNECTION_DONE


@pytest.mark.parametrize("large", [b"", bytes(100)], ids=["small", "large"])
def test_a_client_that_is_lost(pair: Pair, large: bytes) -> None:
    pair.producer.large = memoryview(bytearray(large))
    pair.transport.send_at_once([b"it is reset when this is not read"])
    pair.client.close()
    assert pair.transport.doRead() is main.CONNECTION_LOST
