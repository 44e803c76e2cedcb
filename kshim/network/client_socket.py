"""A client's connection as Twisted's transport, without Twisted's copies.

Twisted receives 64 KiB at a time. This transport receives more of a large request at once, straight into the
request's memory. Twisted joins outgoing data, sends up to 128 KiB of it a turn of the reactor, and begins
with the next turn. This transport gives the socket the pieces unjoined, as much as it takes, and
`send_at_once` does not wait for the next turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from errno import EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH, ETIMEDOUT
from fcntl import ioctl
from itertools import islice
from sys import byteorder
from termios import FIONREAD
from typing import Any, Protocol

from twisted.internet import main, tcp
from twisted.internet.error import ConnectionLost
from twisted.python.failure import Failure

from kshim.callers.context import Contact

SMALL_BYTES = 16 * 1024
"""Up to so many bytes, joining pieces costs less than passing each to the system."""
RECEIVES_A_TURN = 4
"""Limit of receives a turn while more of one large request is available; most requests take two."""
UNREACHED = frozenset((ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN))
"""Errors of a socket whose other end cannot be reached."""
MOST_PIECES = 1024
"""Limit of pieces in one system call (IOV_MAX)."""

Piece = bytes | bytearray | memoryview


class Receiver(Protocol):
    """The protocol above a client's socket."""

    def dataReceived(self, data: bytes) -> None:
        """Take these received bytes."""

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """Return memory for the next bytes to receive; None if they should go to dataReceived.

        arrived: returns how many bytes can be received now.
        """

    def filled(self, received: int) -> None:
        """Note that so many bytes were received into `room()`."""


class Way(Protocol):
    """A way for received bytes straight to another socket."""

    def move_from(self, source: DirectSocket) -> Exception | None:
        """Move the bytes that have come. Return None, or why the source is lost."""


class Passing(Protocol):
    """Knows which bytes need not be received, because they go straight to another socket."""

    def straight_on(self) -> Way | None:
        """Return where the next bytes go; None if they have to be received."""


class DirectSocket(tcp.Connection):
    """Sends `bytes` without copies; the caller must not change them afterwards."""

    protocol: Receiver  # type: ignore[assignment]
    passing: Passing | None = None
    """Asked before bytes are received; None if all are received. An encrypted socket does not ask."""
    is_encrypted = False

    def __init__(self, *arguments: Any) -> None:
        self._unsent: deque[Piece] = deque()
        self._unsent_bytes = 0
        self.sent_later_bytes = 0
        """How many bytes the client has taken of those for which it had no room at once."""
        super().__init__(*arguments)

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes for which the client has no room yet."""
        return self._unsent_bytes

    def doRead(self) -> Any:  # noqa: N802
        """Receive what is available. Return None, or why the client is lost."""
        if self.passing is not None and (way := self.passing.straight_on()) is not None:
            return way.move_from(self)
        room = self.protocol.room(self._arrived)
        for _ in range(RECEIVES_A_TURN):
            wanted = self.bufferSize if room is None else len(room)
            data = b""
            try:
                if room is None:
                    data = self.socket.recv(wanted)
                received = len(data) if room is None else self.socket.recv_into(room)
            except (BlockingIOError, InterruptedError):
                return None
            except OSError as error:
                return why_lost(error)
            if not received:
                return main.CONNECTION_DONE
            if room is None:
                self.protocol.dataReceived(data)
            else:
                self.protocol.filled(received)
            room = self.protocol.room(self._arrived) if received == wanted else None
            if room is None:
                return None
        return None

    def wait_for_room(self) -> None:
        """Pause the producer until the client has room for more, though nothing waits here to be sent."""
        self._pause_producer()
        self.startWriting()

    def _arrived(self) -> int:
        return int.from_bytes(ioctl(self.fileno(), FIONREAD, bytes(4)), byteorder)

    def send_at_once(self, pieces: Iterable[Piece]) -> None:
        """Send the pieces, behind what is not sent yet: at once, as far as the client has room."""
        if self._unsent_bytes > 0:
            self.writeSequence(pieces)
        elif self.connected:
            self._add(pieces)
            self._send()
            if self._unsent_bytes > 0:
                self._send_later()

    def write(self, data: Piece) -> None:
        self.writeSequence((data,))

    def writeSequence(self, pieces: Iterable[Piece]) -> None:  # noqa: N802
        """Send the pieces at the end of this turn of the reactor, together with its other pieces."""
        if self.connected:
            self._add(pieces)
            self._send_later()

    def _add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if piece:
                self._unsent.append(piece)
                self._unsent_bytes += len(piece)

    def _send_later(self) -> None:
        if self._unsent_bytes > self.bufferSize:
            self._pause_producer()
        self.startWriting()

    def _pause_producer(self) -> None:
        if self.producer is not None:
            self.producerPaused = True
            self.producer.pauseProducing()

    def doWrite(self) -> Any:  # noqa: N802
        """Send what has waited for room. Return None, or why the client is lost."""
        unsent_bytes = self._unsent_bytes
        lost = self._send()
        self.sent_later_bytes += unsent_bytes - self._unsent_bytes
        if lost is not None or self._unsent_bytes:
            return lost
        self.stopWriting()
        if self.producer is not None and self.producerPaused:
            self.producerPaused = False
            self.producer.resumeProducing()
        elif self.disconnecting:
            return main.CONNECTION_DONE
        return None

    def connectionLost(self, reason: Any) -> None:
        """Free what the client has not taken: this object may live on until it is collected."""
        self._unsent.clear()
        self._unsent_bytes = 0
        super().connectionLost(reason)

    def _send(self) -> BaseException | None:
        """Send what the socket takes. Return why it is lost, if it is; the next doWrite finds that again."""
        unsent = self._unsent
        if not unsent:
            return None
        try:
            if self._unsent_bytes <= SMALL_BYTES:
                sent = self.socket.send(b"".join(unsent))
            else:
                sent = self.socket.sendmsg(islice(unsent, MOST_PIECES))
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            return why_lost(error)
        self._unsent_bytes -= sent
        if not self._unsent_bytes:
            unsent.clear()
            return None
        while sent >= len(unsent[0]):
            sent -= len(unsent.popleft())
        if sent:
            unsent[0] = memoryview(unsent[0])[sent:]
        return None


class HostLost(ConnectionLost):
    """The host at the other end does not answer, or cannot be reached."""


def why_lost(error: OSError) -> Exception:
    """The reason for Twisted after an error of a socket."""
    return HostLost(error.errno) if error.errno in UNREACHED else main.CONNECTION_LOST


def contact_after(reason: Failure, *, is_ours: bool) -> Contact:
    """How a connection has ended. is_ours: True if the server closed it."""
    if is_ours:
        return Contact.ENDED
    return Contact.LOST if reason.check(HostLost) else Contact.CLOSED


class ClientSocket(DirectSocket, tcp.Server):
    """The socket of a client that has connected."""


class OutgoingSocket(DirectSocket, tcp.Client):
    """The socket of a connection that this process makes."""
