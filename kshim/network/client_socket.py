"""A client's connection as Twisted's transport, without its copies.

Twisted receives 64 KiB at a time. Here more of a large request is received at once, where it is to lie.
Twisted joins what is to be sent, sends up to 128 KiB of it a turn of the reactor, and begins with the next
turn. Here the socket is given the pieces as they are, as much as it takes, and `send_at_once` does not wait
for the next turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from fcntl import ioctl
from itertools import islice
from sys import byteorder
from termios import FIONREAD
from typing import Any, Protocol

from twisted.internet import main, tcp

SMALL_BYTES = 16 * 1024
"""To join so many bytes costs less than to name their pieces to the system."""
RECEIVES_A_TURN = 4
"""As long as more is there of one large request; most take two."""
MOST_PIECES = 1024
"""What one call of the system takes (IOV_MAX)."""

Piece = bytes | bytearray | memoryview


class Receiver(Protocol):
    """What a client's socket hands over what it receives to."""

    def dataReceived(self, data: bytes) -> None:
        """These bytes were received."""

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """Where to receive what comes next; None stands for dataReceived.

        arrived: how many bytes can be received now.
        """

    def filled(self, received: int) -> None:
        """So many bytes were received into `room()`."""


class DirectSocket(tcp.Connection):
    """Sends `bytes` as they are; who hands them over does not change them."""

    protocol: Receiver  # type: ignore[assignment]

    def __init__(self, *arguments: Any) -> None:
        self._unsent: deque[Piece] = deque()
        self._unsent_bytes = 0
        self.sent_later_bytes = 0
        """Of what the client had no room for at once: how many bytes it has taken since."""
        super().__init__(*arguments)

    @property
    def unsent_bytes(self) -> int:
        """What the client has no room for."""
        return self._unsent_bytes

    def doRead(self) -> Any:  # noqa: N802
        """Called when something was received. Returns None, or why the client is lost."""
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
            except OSError:
                return main.CONNECTION_LOST
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

    def _arrived(self) -> int:
        return int.from_bytes(ioctl(self.fileno(), FIONREAD, bytes(4)), byteorder)

    def send_at_once(self, pieces: Iterable[Piece]) -> None:
        """Send the pieces behind what is not sent yet: now, as far as the client has room for them."""
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
        """Send the pieces at the end of this turn of the reactor, with all others of it."""
        if self.connected:
            self._add(pieces)
            self._send_later()

    def _add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if piece:
                self._unsent.append(piece)
                self._unsent_bytes += len(piece)

    def _send_later(self) -> None:
        if self.producer is not None and self._unsent_bytes > self.bufferSize:
            self.producerPaused = True
            self.producer.pauseProducing()
        self.startWriting()

    def doWrite(self) -> Any:  # noqa: N802
        """Called when the socket has room. Returns None, or why it is lost."""
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
        """Free what the client has not taken: the rest of a connection may stay until it is collected."""
        self._unsent.clear()
        self._unsent_bytes = 0
        super().connectionLost(reason)

    def _send(self) -> BaseException | None:
        """Send what the socket takes. If it is lost, that is returned; the next doWrite finds it again."""
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
        except OSError:
            return main.CONNECTION_LOST
        self._unsent_bytes -= sent
        if not self._unsent_bytes:
            unsent.clear()
            return None
        while sent >= len(unsent[0]):
            sent -= len(unsent.popleft())
        if sent:
            unsent[0] = memoryview(unsent[0])[sent:]
        return None


class ClientSocket(DirectSocket, tcp.Server):
    """A client that has connected."""
