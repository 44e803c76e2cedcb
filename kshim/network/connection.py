"""One client's connection: frames in, replies out in the order of the requests.

Requests are read ahead of their replies. So a LeaveGroup is seen while the JoinGroup before it is parked, and
a parked Fetch learns (`Turn`) that another request waits behind it. The requests and bytes read ahead are
bounded, and a client that does not read its replies is not read from. `answer` decides what a request means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from kshim.callers import Client, Refused
from kshim.callers.mistake import Mistake
from kshim.callers.principal import ANONYMOUS, Principal
from kshim.configs.endpoint import Endpoint
from kshim.network.addresses import java_host, unmapped
from kshim.network.beyond import Beyond
from kshim.network.client_socket import contact_after
from kshim.network.first_bytes import stranger
from kshim.network.frames import FrameError, Frames
from kshim.network.idleness import Idleness
from kshim.network.intake import MODEST_BYTES
from kshim.network.reading import Reading
from kshim.network.replies import InFlight, Replies
from kshim.network.shared import Response, Shared
from kshim.network.states import Event, State, Wait
from kshim.turns import Turn
from kshim.turns.promise import Afterwards, Promise
from kshim.turns.rounds import ROUND_S

if TYPE_CHECKING:
    from kshim.network.gate import Server

logger = logging.getLogger(__name__)

# The replies of one turn leave in one write. More than so many bytes are written before the turn ends: the
# transport then reports whether the client reads them, before more requests are answered.
WRITE_BYTES = 64 * 1024
ENDED = (State.CLOSING, State.LOST)


class SeenConnection(NamedTuple):
    """A connection's figures, for the page, metrics and commands."""

    client: Client
    state: State
    in_flight: int
    """Number of requests whose replies have not left."""
    held_bytes: int
    """Bytes of requests without an answer, and of replies that wait for their turn or are not read."""
    active_at: float
    """When a request or a reply last moved, in seconds since 1970."""
    throttled_s: float
    """Seconds until the throttle time of a quota ends."""


class Connection(Protocol):
    """One client. `shared.answer` turns each frame into a reply."""

    transport: Any

    def __init__(
        self, shared: Shared, made: Callable[[Connection], None], lost: Callable[[Connection], None]
    ):
        """made, lost: called when the connection is made, and when it is gone."""
        self.shared = shared
        self._made = made
        self._lost = lost
        self._beyond: Beyond | None = None
        self._in_turn = False  # True inside _read_ahead, which sends the replies at its end
        self._cut_bytes = 0  # what has arrived of an incomplete frame
        self._refusal_delay_s = 0.0  # the delay before bytes that are no request close the connection

    # ---- the transport's side

    def connectionMade(self) -> None:
        transport = self.transport
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        transport.registerProducer(self, streaming=True)
        host, peer = transport.getHost(), transport.getPeer()
        here = Endpoint(unmapped(host.host), host.port)
        self.client = Client(
            java_host(peer.host),
            Endpoint(peer.host, peer.port),
            self.shared.advertised or here,
            listener_name=self.shared.listener_name,
        )
        self._replies = Replies(transport, self.shared.unread)
        self._reading = Reading(transport, self.shared.clock, self._replies, self._read_ahead)
        self._server: Server = self.shared
        beyond = None if self.shared.new_beyond is None else self.shared.new_beyond(self)
        self._beyond = beyond
        self._frames = Frames(self.shared.max_request_bytes, None if beyond is None else beyond.begins)
        gates = self.shared.gates
        if gates is not None:
            self._server = gates.new_gate(self.shared, self.client, self._opened)
            self._frames.allow(*gates.limit(self.shared.max_request_bytes))
            self._refusal_delay_s = gates.failure_delay_s
        self.active_at = self.shared.clock.seconds()
        """When a request or a reply last moved."""
        self._idleness = Idleness(self, self.shared.clock, self.shared.max_idle_ms)
        self.shared.unread.holders.add(self)
        self._made(self)

    def dataReceived(self, data: bytes) -> None:
        self._frames.receive(data)
        self._received()

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """Return memory for the next bytes, which the transport then does not pass to dataReceived; see
        Frames.
        """
        return self._frames.room(arrived) if self._reading.state is State.READING else None

    def filled(self, received: int) -> None:
        """Note that the transport has received so many bytes into `room()`."""
        self._frames.filled(received)
        self._received()

    def _received(self) -> None:
        self.active_at = self.shared.clock.seconds()
        state = self._reading.state
        if state is not State.READING and state not in ENDED:
            self._reading.pause()  # it stands in line, and sends more
        self._read_ahead()
        if self._cut_bytes or self._frames.cut_bytes:
            self._count_cut()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        is_ours = self._reading.state is State.CLOSING
        self._reading.lose()
        self.client.ended(contact_after(reason, is_ours=is_ours))
        self.shared.unread.holders.discard(self)
        self._idleness.stop()
        self._forget_requests()
        self._replies.all_read()
        self._lost(self)
        if self._beyond is not None:
            self._beyond.close()

    def pauseProducing(self) -> None:
        """Stop reading: the transport's buffer is full, as the client does not read."""
        self._reading.happens(Event.STALLS)
        if self._beyond is not None:
            self._beyond.pause()

    def resumeProducing(self) -> None:
        """Go on: the client has read what the transport held."""
        self._replies.all_read()
        self._reading.unstall()
        self.active_at = self.shared.clock.seconds()
        self._read_ahead()
        if self._beyond is not None:
            self._beyond.resume()

    def stopProducing(self) -> None:
        """Do nothing: the transport has lost its client, and connectionLost follows."""

    def _opened(self, is_watched: bool) -> None:
        """Serve the client, which has authenticated. is_watched: the gate sees all further requests."""
        self._frames.allow(self.shared.max_request_bytes)
        self._refusal_delay_s = 0.0
        if not is_watched:
            self._server = self.shared

    def see(self) -> SeenConnection:
        """Return the connection's figures."""
        replies, reading = self._replies, self._reading
        held_bytes = replies.held_bytes + replies.unread_bytes + self._cut_bytes
        throttled_s = reading.throttled_s()
        return SeenConnection(
            self.client, reading.state, len(replies.waiting), held_bytes, self.active_at, throttled_s
        )

    # ---- for the side beyond; see `Near`

    @property
    def is_let_in(self) -> bool:
        return self._server is self.shared or self.client.principal != ANONYMOUS

    @property
    def is_seen_by_gate(self) -> bool:
        return self._server is not self.shared

    @property
    def is_idle(self) -> bool:
        return self._reading.state not in ENDED and self._replies.is_empty

    @property
    def left_bytes(self) -> int:
        return self._frames.left_bytes if self._reading.state is State.READING else 0

    def passed(self, passed_bytes: int) -> None:
        self.active_at = self.shared.clock.seconds()
        self._frames.passed(passed_bytes)

    def is_next(self, turn: Turn) -> bool:
        waiting = self._replies.waiting
        return bool(waiting) and waiting[0] is turn

    def send_part(self, data: bytes | memoryview) -> None:
        if self._reading.state in ENDED:
            return
        self._replies.send()
        self.active_at = self.shared.clock.seconds()
        self._replies.send_part(data)

    def refuse_lost(self, why: str) -> None:
        self._refuse(Refused(f"{self.client.address}: {why}", once=why))

    # ---- waiting

    def wait(self, reason: Wait) -> None:
        """Read no requests until `go_on` is called with the same reason."""
        self._reading.wait(reason)

    def go_on(self, reason: Wait) -> None:
        """Read requests again, unless there is another reason to wait."""
        self._reading.go_on(reason)
        self._read_ahead()

    def _count_cut(self) -> None:
        self._cut_bytes = self._frames.cut_bytes
        self.shared.intake.count(self, self._cut_bytes)

    # ---- requests

    def _read_ahead(self) -> None:
        """Answer the frames that have arrived while the state is READING; send the replies that are ready."""
        if self._in_turn:
            return
        beyond = self._beyond
        if beyond is not None:
            beyond.gathers = True
            if self._frames.unfinished_bytes:
                self._send_parts(beyond)
        replies, rounds, seconds = self._replies, self.shared.rounds, self.shared.clock.seconds
        began_s = now_s = seconds()
        left_s, share_s = ROUND_S - rounds.used_s, rounds.share_s
        until_s = began_s + (left_s if left_s < share_s else share_s)
        self._in_turn = True
        try:
            while self._reading.state is State.READING:
                if now_s >= until_s:
                    self._stand_in_line(is_fresh=now_s - began_s < share_s)
                    break
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._request(frame)
                if replies.outgoing_bytes >= WRITE_BYTES:
                    replies.send()
                now_s = seconds()
        except FrameError as error:
            self._refuse_bytes(error)
        finally:
            self._in_turn = False
        replies.send()
        rounds.used_s += now_s - began_s
        if rounds.used_s >= ROUND_S:
            rounds.end()
        if beyond is not None:
            beyond.flush()

    def _send_parts(self, beyond: Beyond) -> None:
        """Send on the received parts of a request that was begun."""
        while self._reading.state is State.READING and (part := self._frames.next_part()) is not None:
            beyond.send_part(part)

    def _stand_in_line(self, *, is_fresh: bool) -> None:
        """Wait until others have had their turn, then read on."""
        self._reading.stand_in_line()
        self.shared.rounds.stand_in_line(self._take_turn, is_fresh=is_fresh)

    def _take_turn(self) -> None:
        self._reading.go_on(Wait.ROUND)
        self._read_ahead()

    def _request(self, frame: bytes | bytearray) -> None:
        """Answer one request. Its reply is sent at once, unless an earlier request still waits for one."""
        waiting = self._replies.waiting
        if waiting:
            waiting[-1].fire()
        request = InFlight()
        if len(frame) > MODEST_BYTES:
            request.fire()  # so large a request is not parked
        try:
            answer = self._server.answer(frame, self.client, request)
        except Exception as error:
            self._refuse(error)
            return
        if isinstance(answer, Promise):
            if not self._replies.hold(request, len(frame)):
                self._reading.happens(Event.FILLS)
            answer.listen(self._answered, request)
            return
        if request.throttle_ms:
            self._reading.mute(request.throttle_ms)
        if waiting:
            request.done, request.reply = True, answer
            if not self._replies.hold(request, len(answer or b"")):
                self._reading.happens(Event.FILLS)
        else:
            self._replies.put(answer)

    # ---- replies

    def _answered(self, reply: Response | Exception, request: InFlight) -> Afterwards:
        """Keep a reply until all earlier requests are answered; queue the replies whose turn has come. The
        replies of one moment leave in one write.
        """
        if request.made is not None:
            request.made(reply)
        if isinstance(reply, Exception):
            self._refuse(reply)
            return None
        if request.throttle_ms:
            self._reading.mute(request.throttle_ms)
        self._replies.answered(request, reply)
        if self._beyond is not None:
            self._beyond.go_on()
        return self._move_on

    def _move_on(self) -> None:
        """Send the queued replies, and read further requests."""
        self._reading.look_for_room()
        if not self._in_turn:
            self.active_at = self.shared.clock.seconds()
            self._read_ahead()

    def unread_bytes(self) -> int:
        """Return the bytes of answers that the client has not read."""
        return self._replies.left_bytes()

    def read_bytes(self) -> int:
        """Return how many bytes the client has read late, after they had to wait."""
        read_bytes: int = self.transport.sent_later_bytes
        return read_bytes

    # ---- its end

    def _refuse(self, error: BaseException) -> None:
        """Log why, and close the connection, once. If the fault is ours, log the traceback, too."""
        if self._reading.state in ENDED:
            return
        if not isinstance(error, Refused):
            logger.error("closed the connection of %s: %r", self.client.address, error, exc_info=error)
        else:
            ours = error.__cause__ if error.level >= logging.ERROR else None
            logger.log(self._level(error), "closed the connection of %s", error, exc_info=ours)
            if error.last_words is not None and len(self._replies.waiting) <= 1:  # replies leave in order
                self._replies.put(error.last_words)
        self.close()

    def _level(self, error: Refused) -> int:
        if error.once is None:
            return error.level
        return self.shared.once.level((self.client.address.host, error.once), error.names)

    def _refuse_bytes(self, error: FrameError) -> None:
        """Close, because the bytes are no request. A client of another protocol gets an answer in that
        protocol.
        """
        who = stranger(error.start)
        if who is None:
            refused = Refused(f"{self.client.address}: {error}")
            if not self._refusal_delay_s:
                self._refuse(refused)
                return
            self.wait(Wait.CLOSE)
            self.shared.clock.callLater(self._refusal_delay_s, self._refuse, refused)
            return
        if who.answer and not self._replies.waiting:
            self._replies.put_bare(who.answer)
        why = who.mistake.line(text=error.start.decode("latin-1"))
        self._refuse(Refused(f"{self.client.address}: {why}", once=who.mistake))

    def leave(self) -> None:
        """Leave the transport to another connection. No request has come yet."""
        self.transport.unregisterProducer()
        self._reading.lose()
        self.transport.resumeProducing()
        self.shared.unread.holders.discard(self)
        self._idleness.stop()
        self._lost(self)

    def secured(self, principal: Principal | None) -> None:
        """Begin to serve: the TLS handshake is done. principal: from the client's certificate; None if it
        names none.
        """
        if principal is not None:
            self.client.principal = principal

    def insecure(self, mistake: Mistake, **details: object) -> None:
        """Close, because the client cannot speak TLS with this listener."""
        why = mistake.line(protocol=self.shared.protocol, **details)
        self._refuse(Refused(f"{self.client.address}: {why}", once=mistake))

    def refuse_slow(self, why: str) -> None:
        """Close, because others wait for the rest of this client's request."""
        self._refuse(Refused(f"{self.client.address}: {why}"))

    def abort_slow(self, why: str) -> None:
        """Close without sending the unread replies, because others wait for their memory."""
        self._refuse(Refused(f"{self.client.address}: {why}"))
        self._replies.all_read()
        self.transport.abortConnection()

    def drain(self) -> None:
        """Read no further requests, and ask those in flight to finish."""
        self._reading.happens(Event.DRAINS)
        for request in list(self._replies.waiting):
            request.fire()

    def close(self) -> None:
        """Send the replies that are ready, then close without waiting for requests in flight."""
        self._replies.send()
        self._reading.happens(Event.CLOSES)
        # A transport with a paused producer would ask it for more and never close.
        self.transport.unregisterProducer()
        self.transport.loseConnection()
        self._forget_requests()
        if self._beyond is not None:
            self._beyond.close()

    def _forget_requests(self) -> None:
        """Drop the requests in flight, and make the parked ones finish."""
        self._frames = Frames(0)
        self._count_cut()
        self._replies.forget()

    # ---- for the watch over its idleness; see `Idle`

    @property
    def is_closing(self) -> bool:
        return self._reading.state is State.CLOSING

    def close_idle(self) -> None:
        logger.debug("%s: idle for %d ms, closed", self.client.address, self.shared.max_idle_ms)
        if self.shared.gates is not None:
            self.shared.gates.idle(self.client)
        self.close()

    def abort(self) -> None:
        self.transport.abortConnection()
