"""Sockets whose bytes go straight on to another socket, within the system (Linux's splice).

The rest of a large request or response need not be read to go on. It moves from one socket to a pipe and from
the pipe to the other socket, which takes no memory here, and for requests half the time of receiving and
sending it. It moves only as far as the other socket has room for it. Where there is no splice, or a socket
that is encrypted, nothing goes straight on.
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
"""What moves at once, at most; what Linux allows any user."""
LEAST_BYTES = 64 * 1024
"""What moves at once, at least, if so much is there; what a socket has no room for waits here."""
_CAN_SPLICE = hasattr(os, "splice")
_F_SETPIPE_SZ = 1031
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("9I")
_SNDBUF, _QUEUED = 3, 5
"""Of the numbers that SO_MEMINFO gives: what a socket may hold, and what it holds."""


class Way(NamedTuple):
    """What comes next goes straight on."""

    to: SplicingSocket
    left_bytes: int


class Passing(Receiver, Protocol):
    """What a SplicingSocket hands over to."""

    def straight_on(self) -> Way | None:
        """Where the next bytes go, if they are not wanted here."""

    def passed(self, passed_bytes: int) -> None:
        """So many went there."""


class Reading(TwistedProtocol):
    """One that wants all that comes."""

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """See `Receiver`."""
        return None

    def straight_on(self) -> Way | None:
        """See `Passing`."""
        return None


class Pipe:
    """The pipe of this process. It is empty whenever nothing moves."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        with suppress(OSError):  # the user has too many pipes; then less moves at once
            fcntl(self.into, _F_SETPIPE_SZ, PIPE_BYTES)

    def rest(self, left_bytes: int) -> bytes:
        """Empty it of what could not move on."""
        parts = []
        while left_bytes:
            parts.append(os.read(self.out, left_bytes))
            left_bytes -= len(parts[-1])
        return b"".join(parts)


@cache
def _pipe() -> Pipe:
    return Pipe()


class SplicingSocket(DirectSocket):
    """One end of a passage."""

    protocol: Passing

    def doRead(self) -> Any:  # noqa: N802
        """Called when something was received. Returns None, or why the peer is lost."""
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
        """Whether what comes now may go straight out."""
        return bool(_CAN_SPLICE and self.connected and not self.disconnecting and not self._unsent_bytes)

    def room_bytes(self) -> int:
        """How much the system takes to send."""
        info = _MEMINFO.unpack(self.socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))
        return int(info[_SNDBUF] - info[_QUEUED])

    def take_from(self, pipe: Pipe, taken_bytes: int) -> None:
        """Send what is in the pipe; the last of it later, if there is no room for it now."""
        left_bytes = taken_bytes
        try:
            while left_bytes:
                left_bytes -= os.splice(pipe.out, self.fileno(), left_bytes, flags=os.SPLICE_F_NONBLOCK)
        except OSError:  # also of a connection that is lost, which doWrite finds
            self.writeSequence((pipe.rest(left_bytes),))


class PassingClientSocket(SplicingSocket, ClientSocket):
    """A client that has connected to a port of a broker."""
