"""The replies of one connection, in the order of its requests.

A reply waits here until the requests before it are answered, then until the end of the turn, and then until
the client reads it. All of it is counted, by the connection and in `Unread`.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from kshim.network.frames import Sent, framed
from kshim.network.shared import Response
from kshim.turns import Turn
from kshim.turns.unread import Unread

MAX_IN_FLIGHT = 64
MAX_HELD_BYTES = 16 * 1024 * 1024
"""Limit of unanswered frames and waiting replies together; a single one may exceed it."""


class InFlight(Turn):
    """A request whose reply has not left."""

    __slots__ = ("done", "held_bytes", "reply")

    def __init__(self) -> None:
        self.fired = self.is_alone = False  # set here, not by the bases: every request makes one
        self._watchers = self.made = None
        self.done = False
        self.reply: Response = None
        self.throttle_ms = self.held_bytes = 0


class Transport(Protocol):
    """The client's socket, as far as replies are concerned."""

    unsent_bytes: int

    def writeSequence(self, iovec: list[bytes]) -> None: ...  # noqa: N802 (Twisted's name)
    def send_at_once(self, data: list[bytes] | tuple[bytes | memoryview]) -> None: ...


class Replies:
    """The requests that wait for their replies, and the replies that wait to leave."""

    __slots__ = (
        "_outgoing",
        "_transport",
        "_unread",
        "held_bytes",
        "is_stalled",
        "outgoing_bytes",
        "unread_bytes",
        "waiting",
    )

    def __init__(self, transport: Transport, unread: Unread) -> None:
        self._transport = transport
        self._unread = unread
        self._outgoing: list[bytes] = []  # the replies of this turn
        self.waiting: deque[InFlight] = deque()
        """The requests in flight, in their order."""
        self.held_bytes = 0
        """Bytes of requests without an answer, and of replies that wait for earlier ones."""
        self.outgoing_bytes = 0
        """Bytes of the replies of this turn."""
        self.unread_bytes = 0
        """Bytes of replies that the transport holds while the client does not read."""
        self.is_stalled = False
        """True while the connection is Stalled: the client does not read."""

    @property
    def is_empty(self) -> bool:
        """True if no reply leaves at the end of this turn."""
        return not self._outgoing

    def hold(self, request: InFlight, held_bytes: int) -> bool:
        """Keep a request until its reply may leave. Return False if no other may be begun meanwhile."""
        request.held_bytes = held_bytes
        self.held_bytes += held_bytes
        self._unread.bytes += held_bytes
        self.waiting.append(request)
        if request.is_alone and not request.done:
            return False
        return len(self.waiting) < MAX_IN_FLIGHT and self.held_bytes < MAX_HELD_BYTES

    def has_room(self) -> bool:
        """True if another request may be begun."""
        waiting = self.waiting
        if waiting and waiting[-1].is_alone and not waiting[-1].done:
            return False
        return len(waiting) < MAX_IN_FLIGHT and self.held_bytes < MAX_HELD_BYTES

    def answered(self, request: InFlight, reply: Response) -> None:
        """Keep a reply until all earlier requests are answered; queue the replies whose turn has come."""
        request.done, request.reply = True, reply
        waiting = self.waiting
        if waiting and waiting[0] is not request:
            more_bytes = len(reply or b"") - request.held_bytes
            request.held_bytes += more_bytes
            self.held_bytes += more_bytes
            self._unread.bytes += more_bytes
        while waiting and waiting[0].done:
            first = waiting.popleft()
            self.held_bytes -= first.held_bytes
            self._unread.bytes -= first.held_bytes
            self.put(first.reply)

    def put(self, reply: Response) -> None:
        """Queue a reply for the end of this turn; None if the request has no reply."""
        if reply is not None and type(reply) is not Sent:
            self._outgoing += framed(reply)
            self.outgoing_bytes += len(reply)

    def put_bare(self, data: bytes) -> None:
        """Queue bytes that are no frame."""
        self._outgoing.append(data)

    def send(self) -> None:
        """Send the replies of this turn."""
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            outgoing_bytes, self.outgoing_bytes = self.outgoing_bytes, 0
            if self.waiting:  # replies to these may also come in this turn
                self._transport.writeSequence(outgoing)
            else:
                self._transport.send_at_once(outgoing)
            if self.is_stalled:  # perhaps by this
                self.unread_bytes += outgoing_bytes
                self._unread.not_read(outgoing_bytes)

    def send_part(self, data: bytes | memoryview) -> None:
        """Send part of a reply that comes from beyond."""
        self._transport.send_at_once((data,))
        if self.is_stalled:
            self.unread_bytes += len(data)
            self._unread.bytes += len(data)

    def all_read(self) -> None:
        """Stop counting what the transport held: the client has read it, or never will."""
        self._unread.bytes -= self.unread_bytes
        self.unread_bytes = 0

    def left_bytes(self) -> int:
        """Return the bytes of replies that the client has not read; stop counting those that it has read."""
        left_bytes = min(self.unread_bytes, self._transport.unsent_bytes)
        self._unread.bytes -= self.unread_bytes - left_bytes
        self.unread_bytes = left_bytes
        return left_bytes + sum(len(request.reply or b"") for request in self.waiting if request.done)

    def forget(self) -> None:
        """Drop the requests in flight, and make the parked ones finish."""
        waiting, self.waiting = self.waiting, deque()
        self._unread.bytes -= self.held_bytes
        self.held_bytes = 0
        for request in waiting:
            request.fire()
