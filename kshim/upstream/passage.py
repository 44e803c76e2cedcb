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

from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from kshim.client.session import LoginFailed, Session
from kshim.network.client_socket import DirectSocket, Piece
from kshim.network.frames import Beginning, Sent
from kshim.network.shared import Response
from kshim.storage.clock import Timer, TimerClock
from kshim.turns import Turn
from kshim.turns.promise import Afterwards, Promise
from kshim.upstream.lost import Lost, lost_by
from kshim.upstream.passage_states import (
    ENDED,
    FLOWS,
    NEXT,
    RENEWABLE,
    SENDING,
    UNCONNECTED,
    Event,
    Flow,
    State,
)
from kshim.upstream.responses import BadResponse, Part, Responses
from kshim.upstream.splicing import Reading, Way, ready

RECEIVED_BYTES = 64 * 1024
"""Limit of bytes received at once from the broker, if they do not go from socket to socket."""
EARLY_BYTES = 64 * 1024
"""The client is not read from once so much waits for the connection to be made."""
CLOSE_S = 30.0
"""How long the broker may take to read what a client has sent before it left."""


class Expected(NamedTuple):
    """A request that waits for its response."""

    turn: Turn | None
    """The reply's place in the client's order; None for a login, and for a question of kshim."""
    promise: Promise[Response]
    """Of the response without its size, or of a Sent."""
    is_read: bool
    """True if the response has to be collected whole, however large it is."""


class Client(Typed):
    """The client's connection, which takes the responses."""

    @property
    def gathers(self) -> bool:
        """True if what is forwarded is held back until `flush`."""

    def is_next(self, turn: Turn) -> bool:
        """True if all replies before that of `turn` have left."""

    def pass_on(self, data: bytes | memoryview) -> None:
        """Send part of the next reply."""

    @property
    def socket(self) -> DirectSocket | None:
        """The socket that takes the next reply straight from the broker's; None if it cannot now."""

    def wait_for_broker(self) -> None:
        """Read no requests until `go_on_with_broker` is called: the broker does not read."""

    def go_on_with_broker(self) -> None:
        """Read requests again."""

    def lost_broker(self, why: str) -> None:
        """Close, because the broker has closed its connection."""


class Passage(Reading):
    """The connection to the broker. Requests may be forwarded before it is made."""

    transport: Any

    def __init__(self, client: Client, broker: str, max_response_bytes: int, clock: TimerClock) -> None:
        """broker: the broker's name in log lines."""
        self._client = client
        self._clock = clock
        self._broker = broker
        self._responses = Responses(max_response_bytes)
        self._expected: deque[Expected] = deque()
        self._outgoing: list[Piece] = []
        self._state = State.CONNECTING
        self._flow = Flow.FLOWING
        self._is_responding = False
        """True inside `_respond`, which goes on by itself when one of its replies makes room for more."""
        self._aborts: Timer | None = None
        self.session: Session | None = None
        self._collected: bytearray | None = None
        """The parts so far of a large response that is collected whole."""

    # ---- requests

    def flush(self) -> None:
        """Send what was held back, in one write."""
        if not self._outgoing:
            return
        if self._state in SENDING:
            outgoing, self._outgoing = self._outgoing, []
            self.transport.send_at_once(outgoing)
        elif self._state is State.CONNECTING and sum(map(len, self._outgoing)) >= EARLY_BYTES:
            self._happens(Event.FILLS)
            self._client.wait_for_broker()

    def forward(self, frame: bytes | bytearray, turn: Turn, *, is_read: bool) -> Promise[Response]:
        """Send a request. The promise is kept with its response without the size, or with a Sent."""
        self._log_in_if_due()
        promise: Promise[Response] = Promise()
        self._expected.append(Expected(turn, promise, is_read))
        self._send(frame)
        return promise

    def ask(self, frame: bytes) -> Promise[Response]:
        """Send a request of kshim on the client's behalf. The promise is kept with its response without the
        size, which the client does not get.
        """
        promise: Promise[Response] = Promise()
        self._expected.append(Expected(None, promise, is_read=True))
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
        if not self._client.gathers:
            self.flush()

    # ---- what goes straight on

    @property
    def socket(self) -> DirectSocket | None:
        """The socket that takes more of a request straight from the client's; None if it cannot now."""
        return ready(self.transport) if self._state in SENDING and not self._outgoing else None

    def straight_on(self) -> Way | None:
        """Return where the rest of a large response goes, once it is next; see `Passing`."""
        left_bytes = self._responses.left_bytes
        if not left_bytes or self._state in ENDED or self._flow is Flow.UNREAD or self._expected[0].is_read:
            return None
        to = self._client.socket
        return None if to is None else Way(to, left_bytes, self._passed)

    def _passed(self, passed_bytes: int) -> None:
        """Note that so many bytes of the response went straight on."""
        if (do := self._take(self._responses.passed(passed_bytes))) is not None:
            do()
        self._receive_or_not()

    # ---- the login

    def _log_in_if_due(self) -> None:
        """Renew the login, if that is due, behind the requests under way. Later requests wait until it is
        done.
        """
        session = self.session
        if session is None or self._state not in RENEWABLE or not session.is_due(self._clock.seconds()):
            return
        self.flush()
        self._happens(Event.LOGIN_BEGINS)
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
            self._happens(Event.LOGIN_ENDS)
            self.flush()
            if self._state is State.OPEN:
                self._client.go_on_with_broker()
            return
        promise: Promise[Any] = Promise()
        promise.listen(
            lambda answer: self._go_on_with_login(
                session, lambda: session.answer(answer, self._clock.seconds()), self._expected.appendleft
            )
        )
        expect(Expected(None, promise, is_read=True))
        self.transport.send_at_once((len(frame).to_bytes(4), frame))

    # ---- the client's side

    def pause(self) -> None:
        """Receive nothing more, because the client does not read."""
        self._flows(Event.CLIENT_STALLS)

    def resume(self) -> None:
        """Receive again, because the client has read."""
        self._flows(Event.CLIENT_READS)
        self.go_on()

    def go_on(self) -> None:
        """Go on with the next response, if it had to wait for a reply before it."""
        if self._responses.held_bytes and self._state not in ENDED:
            self._respond()
        else:
            self._receive_or_not()

    def close(self) -> None:
        """Close, because the client is gone. What it has sent still goes to the broker."""
        if self._state in ENDED:
            return
        is_made = self._happens(Event.CLIENT_LEAVES) is not State.LEFT
        self._expected.clear()
        self._responses = Responses(0)
        if is_made:
            self.transport.unregisterProducer()
            self._lose_connection()

    def _lose_connection(self) -> None:
        self.transport.loseConnection()
        self._aborts = self._clock.callLater(CLOSE_S, self.transport.abortConnection)

    # ---- the transport's side

    def connectionMade(self) -> None:
        before = self._state
        self._happens(Event.CONNECTS)
        transport = self.transport
        transport.bufferSize = RECEIVED_BYTES
        if isinstance(transport, DirectSocket):
            transport.passing = self
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        if self._state in ENDED:
            self.flush()
            self._lose_connection()
            return
        transport.registerProducer(self, streaming=True)
        self.flush()
        if before is State.FULL and self._state is State.OPEN:
            self._client.go_on_with_broker()

    def dataReceived(self, data: bytes) -> None:
        if self._state in ENDED:
            return
        self._responses.receive(data)
        self._respond()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._aborts is not None and self._aborts.active():
            self._aborts.cancel()
        self.lose(lost_by(reason))

    def lose(self, lost: Lost) -> None:
        """Report to the client that the connection was lost, or could not be made."""
        before = self._state
        self._happens(Event.LOSES_BROKER)
        if before not in ENDED:
            self._client.lost_broker(f"upstream broker {self._broker} {lost.why}")

    def pauseProducing(self) -> None:
        """Stop reading requests: the transport's buffer is full, as the broker does not read."""
        self._happens(Event.BROKER_STALLS)
        self._client.wait_for_broker()

    def resumeProducing(self) -> None:
        """Read requests again: the broker has read what the transport held."""
        self._happens(Event.BROKER_READS)
        if self._state is State.OPEN:
            self._client.go_on_with_broker()

    def stopProducing(self) -> None:
        """Do nothing: the transport has lost its broker, and connectionLost follows."""

    # ---- responses

    def _respond(self) -> None:
        """Hand over the responses that have been received and may leave."""
        if self._is_responding:
            return
        self._is_responding = True
        afterwards: dict[Callable[[], object], None] = {}
        try:
            while self._may_leave() and (received := self._responses.take()) is not None:
                if (do := self._take(received)) is not None:
                    afterwards[do] = None
        except BadResponse as error:
            self.lose(Lost(f"sent what is no response to a request: {error}"))
            self.transport.abortConnection()
        finally:
            self._is_responding = False
        for do in afterwards:
            do()
        self._receive_or_not()

    def _may_leave(self) -> bool:
        """True if the next response may leave: a large one waits until it is next, all wait for a client that
        reads.
        """
        if self._state in ENDED or self._flow is Flow.UNREAD:
            return False
        if not self._responses.is_next_large() or not self._expected:
            return True
        first = self._expected[0]
        return first.is_read or first.turn is None or self._client.is_next(first.turn)

    def _take(self, received: bytes | Part) -> Afterwards:
        if not self._expected:
            raise BadResponse("no request waits for one")
        if isinstance(received, bytes):
            return self._expected.popleft().promise.answer(received)
        if self._expected[0].is_read:
            return self._collect(received)
        self._client.pass_on(received.data)
        if received.is_last and self._state not in ENDED:
            return self._expected.popleft().promise.answer(Sent(received.size))
        return None

    def _collect(self, part: Part) -> Afterwards:
        if self._collected is None:
            self._collected = bytearray()
        self._collected += part.data
        if not part.is_last:
            return None
        whole, self._collected = bytes(memoryview(self._collected)[4:]), None
        return self._expected.popleft().promise.answer(whole)

    def _receive_or_not(self) -> None:
        """Receive from the broker only if all that was received could be handed over."""
        if self._state in ENDED:
            return
        may_leave = self._may_leave()
        if not may_leave:
            self._flows(Event.MUST_WAIT)
        elif self._flow is not Flow.FLOWING:
            self._flows(Event.MAY_LEAVE)

    # ---- states

    def _happens(self, event: Event) -> State:
        """Change the state as `NEXT` says, and return the new one."""
        self._state = NEXT[self._state].get(event, self._state)
        return self._state

    def _flows(self, event: Event) -> None:
        """Change the flow as `FLOWS` says. The transport receives only while responses flow."""
        if self._state in ENDED:
            return
        before = self._flow
        after = self._flow = FLOWS[before].get(event, before)
        if self._state in UNCONNECTED:
            return
        # Pause it also if the flow is as before: the client may have stalled before there was a transport.
        if after is not Flow.FLOWING:
            self.transport.pauseProducing()
        elif before is not Flow.FLOWING:
            self.transport.resumeProducing()
