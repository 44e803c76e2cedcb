"""Sockets that pass bytes straight to another socket, inside the system (Linux's splice).

The rest of a large request or response goes on without being read. It moves from one socket to a pipe, and
from the pipe to the other socket. That takes no memory in this process, and for requests half the time of
receiving and sending. It moves only as far as the other socket has room. Without splice, or with an encrypted
socket, bytes are received and sent as usual.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from fcntl import fcntl
from functools import cache
from typing import Any, NamedTuple, Protocol

from twisted.internet import main
from twisted.internet.protocol import Protocol as TwistedProtocol

from kshim.network.client_socket import ClientSocket, DirectSocket, Receiver

PIPE_BYTES = 1024 * 1024
"""Limit of bytes that move at once: the largest pipe that Linux allows any user."""
LEAST_BYTES = 64 * 1024
"""Up to so much moves at once even to a socket without room for it; the rest waits in this process."""
_CAN_SPLICE = hasattr(os, "splice")
_F_SETPIPE_SZ = 1031
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("9I")
_SNDBUF, _QUEUED = 3, 5
"""The places of two numbers in SO_MEMINFO: the socket's limit, and the bytes it holds."""


class Way(NamedTuple):
    """A destination socket, and how many bytes to splice to it."""

    to: SplicingSocket
    left_bytes: int


class Passing(Receiver, Protocol):
    """The protocol above a SplicingSocket."""

    def straight_on(self) -> Way | None:
        """Return where the next bytes go; None if they have to be received."""

    def passed(self, passed_bytes: int) -> None:
        """Note that so many bytes have moved there."""


class Reading(TwistedProtocol):
    """A protocol that receives all bytes."""

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """See `Receiver`."""
        return None

    def straight_on(self) -> Way | None:
        """See `Passing`."""
        return None


class Pipe:
    """The process's pipe. It is empty whenever nothing moves."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        with suppress(OSError):  # the user has too many pipes: less moves at once
            fcntl(self.into, _F_SETPIPE_SZ, PIPE_BYTES)

    def rest(self, left_bytes: int) -> bytes:
        """Read and return the bytes that could not move on."""
        parts = []
        while left_bytes:
            parts.append(os.read(self.out, left_bytes))
            left_bytes -= len(parts[-1])
        return b"".join(parts)


@cache
def _pipe() -> Pipe:
    return Pipe()


class SplicingSocket(DirectSocket):
    """A socket of either side of a passage."""

    protocol: Passing

    def doRead(self) -> Any:  # noqa: N802
        """Receive or splice what has come. Return None, or why the peer is lost."""
        way = self.protocol.straight_on()
        return super().doRead() if way is None else self._pass_on(*way)

    def _pass_on(self, to: SplicingSocket, left_bytes: int) -> Any:
        most = min(left_bytes, PIPE_BYTES, max(to.room_bytes(), LEAST_BYTES))
        try:
            pipe = _pipe()
            taken = os.splice(self.fileno(), pipe.into, most, flags=os.SPLICE_F_NONBLOCK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return main.CONNECTION_LOST
        if not taken:
            return main.CONNECTION_DONE
        to.take_from(pipe, taken)
        self.protocol.passed(taken)
        return None

    # ---- as the end where it goes

    @property
    def is_ready(self) -> bool:
        """True if bytes may be spliced into this socket now: nothing waits in front of them."""
        return bool(_CAN_SPLICE and self.connected and not self.disconnecting and not self._unsent_bytes)

    def room_bytes(self) -> int:
        """Return how many bytes the system takes to send."""
        info = _MEMINFO.unpack(self.socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))
        return int(info[_SNDBUF] - info[_QUEUED])

    def take_from(self, pipe: Pipe, taken_bytes: int) -> None:
        """Send what is in the pipe. What has no room now is sent later."""
        left_bytes = taken_bytes
        try:
            while left_bytes:
                left_bytes -= os.splice(pipe.out, self.fileno(), left_bytes, flags=os.SPLICE_F_NONBLOCK)
        except OSError:  # also for a lost connection, which doWrite finds
            self.writeSequence((pipe.rest(left_bytes),))


class PassingClientSocket(SplicingSocket, ClientSocket):
    """A client's connection to a port that stands for a broker."""
