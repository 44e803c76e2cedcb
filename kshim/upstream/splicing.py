"""Moves bytes straight from one socket to another, inside the system (Linux's splice).

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
from typing import NamedTuple

from twisted.internet import main
from twisted.internet.protocol import Protocol as TwistedProtocol

from kshim.network.client_socket import DirectSocket

PIPE_BYTES = 1024 * 1024
"""Limit of bytes that move at once: the largest pipe that Linux allows any user."""
LEAST_BYTES = 64 * 1024
"""Up to so much moves at once even to a socket with less room; the rest waits in this process."""
_CAN_SPLICE = hasattr(os, "splice")
_F_SETPIPE_SZ = 1031
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("9I")
_SNDBUF, _QUEUED = 3, 5
"""The places of two numbers in SO_MEMINFO: the socket's limit, and the bytes it holds."""


class Reading(TwistedProtocol):
    """A protocol that receives all bytes."""

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """See `Receiver`."""
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


class Way(NamedTuple):
    """A destination socket, how many bytes to splice to it, and the function that notes the moved bytes."""

    to: DirectSocket
    left_bytes: int
    passed: Callable[[int], object]

    def move_from(self, source: DirectSocket) -> Exception | None:
        """Move what has come. Return None, or why the source is lost."""
        room_bytes = _room_bytes(self.to)
        if not room_bytes:
            self.to.wait_for_room()
            return None
        most = min(self.left_bytes, PIPE_BYTES, max(room_bytes, LEAST_BYTES))
        try:
            pipe = _pipe()
            taken = os.splice(source.fileno(), pipe.into, most, flags=os.SPLICE_F_NONBLOCK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return main.CONNECTION_LOST
        if not taken:
            return main.CONNECTION_DONE
        _send(pipe, taken, self.to)
        self.passed(taken)
        return None


def ready(transport: object) -> DirectSocket | None:
    """Return a transport into which bytes may be spliced now: nothing waits in front of them. Else None."""
    if not (_CAN_SPLICE and isinstance(transport, DirectSocket)) or transport.is_encrypted:
        return None
    is_ready = transport.connected and not transport.disconnecting and not transport.unsent_bytes
    return transport if is_ready else None


def _room_bytes(to: DirectSocket) -> int:
    """Return how many bytes the system takes to send; 0 until the socket is writable again, which the system
    says when a third of its memory is free.
    """
    info = _MEMINFO.unpack(to.socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))
    room_bytes = int(info[_SNDBUF] - info[_QUEUED])
    return room_bytes if room_bytes >= info[_QUEUED] // 2 else 0


def _send(pipe: Pipe, taken_bytes: int, to: DirectSocket) -> None:
    """Send what is in the pipe. What has no room now is sent later."""
    left_bytes = taken_bytes
    try:
        while left_bytes:
            left_bytes -= os.splice(pipe.out, to.fileno(), left_bytes, flags=os.SPLICE_F_NONBLOCK)
    except OSError:  # also for a lost connection, which doWrite finds
        to.writeSequence((pipe.rest(left_bytes),))
