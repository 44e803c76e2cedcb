"""A client's connection whose requests may be forwarded to one upstream broker.

It is a `Connection`: requests are read ahead within its bounds, and replies leave in order, whoever answers
them. A `Passage` connects it to the broker. When the broker closes the passage, the client's connection is
closed as well, as the broker would have done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshim.callers import Refused
from kshim.callers.principal import ANONYMOUS
from kshim.network.connection import ENDED, Connection, InFlight, Response, Shared
from kshim.network.states import Event, State
from kshim.turns import Turn
from kshim.turns.promise import Afterwards
from kshim.upstream.passage import Passage, Passed
from kshim.upstream.requests import Requests
from kshim.upstream.splicing import SplicingSocket, Way

NewPassage = Callable[["Relay"], Passage]
"""Makes a passage, which begins to connect to the broker."""


class Relay(Connection):
    """One client of one upstream broker."""

    _frames: Requests

    def __init__(
        self,
        shared: Shared,
        made: Callable[[Connection], None],
        lost: Callable[[Connection], None],
        new_passage: NewPassage,
        is_own_topic: Callable[[bytes], bool],
    ) -> None:
        """is_own_topic: True for the name or id of kshim's own topic, to which clients may not write."""
        super().__init__(shared, made, lost)
        self._new_passage = new_passage
        self._is_own_topic = is_own_topic
        self._passage: Passage | None = None
        self._broker_reads = True

    @property
    def passage(self) -> Passage:
        """The connection to the broker; made with the first request that needs it."""
        if self._passage is None:
            passage = self._passage = self._new_passage(self)
            if self._in_turn:
                passage.gather()
        return self._passage

    @property
    def is_inside(self) -> bool:
        """True if the client may send all requests: it has authenticated, or need not."""
        return self._server is self.shared or self.client.principal != ANONYMOUS

    # ---- what a Passage asks of its client

    def is_next(self, turn: Turn) -> bool:
        """True if all replies before that of `turn` have left."""
        return bool(self._in_flight) and self._in_flight[0] is turn

    def pass_on(self, data: bytes | memoryview) -> None:
        """Send part of the next reply."""
        if self._state in ENDED:
            return
        self._send()
        self.active_at = self.shared.clock.seconds()
        self.transport.send_at_once((data,))
        if self._state is State.STALLED:
            self._unread_bytes += len(data)
            self.shared.unread.bytes += len(data)

    @property
    def socket(self) -> SplicingSocket | None:
        """The socket that takes the next reply straight from the broker's; None if it cannot now."""
        transport = self.transport
        if self._state in ENDED or self._outgoing or not isinstance(transport, SplicingSocket):
            return None
        return transport if transport.is_ready else None

    def wait_for_broker(self) -> None:
        """Read no requests until `go_on_with_broker` is called."""
        self._broker_reads = False
        self._happens(Event.FILLS)

    def go_on_with_broker(self) -> None:
        """Read requests again."""
        self._broker_reads = True
        self._look_for_room()
        self._read_ahead()

    def lost_broker(self, why: str) -> None:
        """Close, as the broker did."""
        self._refuse(Refused(f"{self.client.address}: {why}", once=why))

    # ---- what goes straight on

    def straight_on(self) -> Way | None:
        """See `splicing.Passing`: the rest of a request in parts goes straight to the broker."""
        if not self._frames.unfinished_bytes:
            return None
        left_bytes = self._frames.left_bytes
        if not left_bytes or self._state is not State.READING or self._passage is None:
            return None
        to = self._passage.socket
        return None if to is None else Way(to, left_bytes)

    def passed(self, passed_bytes: int) -> None:
        """See `splicing.Passing`."""
        self.active_at = self.shared.clock.seconds()
        self._frames.passed(passed_bytes)

    # ---- as a Connection

    def _new_frames(self, max_bytes: int) -> Requests:
        return Requests(max_bytes, self._may_begin)

    def _may_begin(self, topic: bytes) -> bool:
        """True if a Produce to a topic may go on before it is whole, because nothing looks into it."""
        return self._server is self.shared and not self.shared.looks_into and not self._is_own_topic(topic)

    def connectionMade(self) -> None:
        super().connectionMade()
        self.client.relay = self

    def connectionLost(self, *reason: Any) -> None:
        super().connectionLost(*reason)
        if self._passage is not None:
            self._passage.close()

    def pauseProducing(self) -> None:
        super().pauseProducing()
        if self._passage is not None:
            self._passage.pause()

    def resumeProducing(self) -> None:
        super().resumeProducing()
        if self._passage is not None:
            self._passage.resume()

    def close(self) -> None:
        super().close()
        if self._passage is not None:
            self._passage.close()

    def _read_ahead(self) -> None:
        if self._in_turn:
            return
        if self._passage is not None:
            self._passage.gather()
            if self._frames.unfinished_bytes:
                self._pass_parts(self._passage)
        super()._read_ahead()
        if self._passage is not None:
            self._passage.flush()

    def _pass_parts(self, passage: Passage) -> None:
        """Send the received parts of a request that is forwarded in parts."""
        while self._state is State.READING and (part := self._frames.next_part()) is not None:
            passage.send_part(part)

    def _answered(self, reply: Response | Exception, request: InFlight) -> Afterwards:
        do = super()._answered(reply, request)
        if self._passage is not None:
            self._passage.go_on()
        return do

    def _put(self, reply: Response) -> None:
        if not isinstance(reply, Passed):
            super()._put(reply)

    def _has_room(self) -> bool:
        return self._broker_reads and super()._has_room()
