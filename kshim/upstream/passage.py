"""The connection on which one client's requests go to one upstream broker, and the responses come back.

Of responses, only the sizes are read. A small response is one reply. A large one goes on to the client in
parts, as soon as all replies before it have left. Until then, and while the client does not read, nothing
more is received from the broker. While the broker does not read, the client is not read from. So neither side
can make kshim hold more than a few hundred kilobytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from typing import Protocol as Typed

from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from kshim.network.client_socket import Piece
from kshim.network.frames import Beginning
from kshim.storage.clock import Clock
from kshim.turns import Turn
from kshim.turns.later import Afterwards, Promise, do_all
from kshim.upstream.lost import Lost, lost_by
from kshim.upstream.responses import BadResponse, Part, Responses
from kshim.upstream.session import LoginFailed, Session
from kshim.upstream.splicing import SplicingSocket, Way

RECEIVED_BYTES = 64 * 1024
"""Limit of bytes received at once from the broker, if they do not go from socket to socket."""
EARLY_BYTES = 64 * 1024
"""The client is not read from once so much waits for the connection to be made."""
CLOSE_S = 30.0
"""How long the broker may take to read what a client has sent before it left."""


class Passed:
    """Stands for a response whose bytes have already gone to the client."""

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


class Expected(NamedTuple):
    """A request that waits for its response."""

    turn: Turn | None
    """The reply's place in the client's order; None for a login."""
    promise: Promise[bytes | Passed]
    is_read: bool
    """True if the response has to be collected whole, however large it is."""


class Client(Typed):
    """The client's connection, which takes the responses."""

    def is_next(self, turn: Turn) -> bool:
        """True if all replies before that of `turn` have left."""

    def pass_on(self, data: bytes | memoryview) -> None:
        """Send part of the next reply."""

    @property
    def socket(self) -> SplicingSocket | None:
        """The socket that takes the next reply straight from the broker's; None if it cannot now."""

    def wait_for_broker(self) -> None:
        """Read no requests until `go_on_with_broker` is called: the broker does not read."""

    def go_on_with_broker(self) -> None:
        """Read requests again."""

    def lost_broker(self, why: str) -> None:
        """Close, because the broker has closed its connection."""


class Passage(Protocol):
    """The connection to the broker. Requests may be forwarded before it is made."""

    transport: Any

    def __init__(self, client: Client, broker: str, max_response_bytes: int, clock: Clock) -> None:
        """broker: the broker's name in log lines."""
        self._client = client
        self._clock = clock
        self._broker = broker
        self._responses = Responses(max_response_bytes)
        self._expected: deque[Expected] = deque()
        self._outgoing: list[Piece] = []
        self._gathers = False
        self._is_responding = False
        self._is_made = False
        self._broker_reads = True
        self._is_closed = False
        self._client_reads = True
        self._reads = True
        """True while the transport receives."""
        self._is_early = False
        """True while the client is not read from until the connection is made."""
        self._aborts: Any = None
        self.session: Session | None = None
        self._is_logging_in = False
        """True while requests wait for a renewed login."""
        self._collected: bytearray | None = None
        """The parts so far of a large response that is collected whole."""

    # ---- requests

    def gather(self) -> None:
        """Hold back what is forwarded until `flush` is called, and then send it in one write."""
        self._gathers = True

    def flush(self) -> None:
        """Send what was held back."""
        self._gathers = False
        if not self._outgoing or self._is_logging_in:
            return
        if self._is_made:
            outgoing, self._outgoing = self._outgoing, []
            self.transport.send_at_once(outgoing)
        elif not self._is_early and sum(map(len, self._outgoing)) >= EARLY_BYTES:
            self._is_early = True
            self._client.wait_for_broker()

    def forward(self, frame: bytes | bytearray, turn: Turn, *, is_read: bool) -> Promise[bytes | Passed]:
        """Send a request. The promise is kept with its response without the size, or with a Passed."""
        self._log_in_if_due()
        promise: Promise[bytes | Passed] = Promise()
        self._expected.append(Expected(turn, promise, is_read))
        self._send(frame)
        return promise

    def send(self, frame: bytes | bytearray) -> None:
        """Send a request that has no response."""
        self._log_in_if_due()
        self._send(frame)

    def _send(self, frame: bytes | bytearray) -> None:
        size = frame.size if isinstance(frame, Beginning) else len(frame)
        self._outgoing.append(size.to_bytes(4))
        self.send_part(frame)

    def send_part(self, part: Piece) -> None:
        """Send more of a request that was forwarded or sent as its Beginning."""
        self._outgoing.append(part)
        if not self._gathers:
            self.flush()

    # ---- what goes straight on

    @property
    def socket(self) -> SplicingSocket | None:
        """The socket that takes more of a request straight from the client's; None if it cannot now."""
        transport = self.transport
        is_free = self._is_made and not self._outgoing and not self._is_logging_in
        if is_free and isinstance(transport, SplicingSocket):
            return transport if transport.is_ready else None
        return None

    def straight_on(self) -> Way | None:
        """See `splicing.Passing`: once it is next, the rest of a large response goes straight on."""
        left_bytes = self._responses.left_bytes
        if not left_bytes or self._is_closed or not self._client_reads or self._expected[0].is_read:
            return None
        to = self._client.socket
        return None if to is None else Way(to, left_bytes)

    def passed(self, passed_bytes: int) -> None:
        """See `splicing.Passing`."""
        afterwards: Afterwards = {}
        self._take(self._responses.passed(passed_bytes), afterwards)
        do_all(afterwards)
        self._receive_or_not()

    # ---- the login

    def _log_in_if_due(self) -> None:
        """Renew the login, if that is due, behind the requests under way. Later requests wait until it is
        done.
        """
        session = self.session
        if session is None or not self._is_made or not session.is_due(self._clock.seconds()):
            return
        self.flush()
        self._is_logging_in = True
        self._client.wait_for_broker()
        self._go_on_with_login(session, session.begin, self._expected.append)

    def _go_on_with_login(
        self,
        session: Session,
        next_request: Callable[[], bytes | None],
        expect: Callable[[Expected], object],
    ) -> None:
        """expect: queues a login request: the first one behind the requests under way, later ones before
        those that wait.
        """
        try:
            frame = next_request()
        except LoginFailed as failed:
            self.lose(Lost(str(failed), is_refused=True))
            self.transport.abortConnection()
            return
        if frame is None:
            self._is_logging_in = False
            self.flush()
            if self._broker_reads:
                self._client.go_on_with_broker()
            return
        promise: Promise[Any] = Promise()
        promise.listen(
            lambda answer, _: self._go_on_with_login(
                session, lambda: session.answer(answer, self._clock.seconds()), self._expected.appendleft
            )
        )
        expect(Expected(None, promise, is_read=True))
        self.transport.send_at_once((len(frame).to_bytes(4), frame))

    # ---- the client's side

    def pause(self) -> None:
        """Receive nothing more, because the client does not read."""
        self._client_reads = False
        self._receive_or_not()

    def resume(self) -> None:
        """Receive again, because the client has read."""
        self._client_reads = True
        self.go_on()

    def go_on(self) -> None:
        """Go on with the next response, if it had to wait for a reply before it."""
        if self._responses.held_bytes and not self._is_closed:
            self._respond()
        else:
            self._receive_or_not()

    def close(self) -> None:
        """Close, because the client is gone. What it has sent still goes to the broker."""
        if self._is_closed:
            return
        self._is_closed = True
        self._expected.clear()
        self._responses = Responses(0)
        if self._is_made:
            self.transport.unregisterProducer()
            self._lose_connection()

    def _lose_connection(self) -> None:
        self.transport.loseConnection()
        self._aborts = self._clock.callLater(CLOSE_S, self.transport.abortConnection)

    # ---- the transport's side

    def connectionMade(self) -> None:
        self._is_made = True
        transport = self.transport
        transport.bufferSize = RECEIVED_BYTES
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        if not self._is_closed:
            transport.registerProducer(self, streaming=True)
        self.flush()
        if self._is_closed:
            self._lose_connection()
        elif self._is_early and self._broker_reads:
            self._client.go_on_with_broker()

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """See `client_socket.Receiver`."""
        return None

    def dataReceived(self, data: bytes) -> None:
        if self._is_closed:
            return
        self._responses.receive(data)
        self._respond()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._aborts is not None and self._aborts.active():
            self._aborts.cancel()
        self.lose(lost_by(reason))

    def lose(self, lost: Lost) -> None:
        """Report to the client that the connection was lost, or could not be made."""
        if not self._is_closed:
            self._is_closed = True
            self._client.lost_broker(f"upstream broker {self._broker} {lost.why}")

    def pauseProducing(self) -> None:
        """Stop reading requests: the transport's buffer is full, as the broker does not read."""
        self._broker_reads = False
        self._client.wait_for_broker()

    def resumeProducing(self) -> None:
        """Read requests again: the broker has read what the transport held."""
        self._broker_reads = True
        if not self._is_logging_in:
            self._client.go_on_with_broker()

    def stopProducing(self) -> None:
        """Do nothing: the transport has lost its broker, and connectionLost follows."""

    # ---- responses

    def _respond(self) -> None:
        """Hand over the responses that have been received and may leave."""
        if self._is_responding:
            return
        self._is_responding = True
        afterwards: Afterwards = {}
        try:
            while self._may_leave() and (received := self._responses.take()) is not None:
                self._take(received, afterwards)
        except BadResponse as error:
            self.lose(Lost(f"sent what is no response to a request: {error}"))
            self.transport.abortConnection()
        finally:
            self._is_responding = False
        do_all(afterwards)
        self._receive_or_not()

    def _may_leave(self) -> bool:
        """True if the next response may leave: a large one waits until it is next, all wait for a client that
        reads.
        """
        if self._is_closed or not self._client_reads:
            return False
        if not self._responses.is_next_large() or not self._expected:
            return True
        first = self._expected[0]
        return first.is_read or first.turn is None or self._client.is_next(first.turn)

    def _take(self, received: bytes | Part, afterwards: Afterwards) -> None:
        if not self._expected:
            raise BadResponse("no request waits for one")
        if isinstance(received, bytes):
            self._expected.popleft().promise.answer(received, afterwards)
            return
        if self._expected[0].is_read:
            self._collect(received, afterwards)
            return
        self._client.pass_on(received.data)
        if received.is_last and not self._is_closed:
            self._expected.popleft().promise.answer(Passed(received.size), afterwards)

    def _collect(self, part: Part, afterwards: Afterwards) -> None:
        if self._collected is None:
            self._collected = bytearray()
        self._collected += part.data
        if part.is_last:
            whole, self._collected = bytes(memoryview(self._collected)[4:]), None
            self._expected.popleft().promise.answer(whole, afterwards)

    def _receive_or_not(self) -> None:
        """Receive from the broker only if all that was received could be handed over."""
        if self._is_closed or not self._is_made:
            return
        reads = self._client_reads and self._may_leave()
        if reads is not self._reads:
            self._reads = reads
            if reads:
                self.transport.resumeProducing()
            else:
                self.transport.pauseProducing()
