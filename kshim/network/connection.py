"""One client's connection: frames in, replies out in the order of the requests.

Requests are read ahead of their replies. So a LeaveGroup is seen while the JoinGroup before it is parked, and
a parked Fetch learns (`Turn`) that another request waits behind it. The requests and bytes read ahead are
bounded, and a client that does not read its replies is not read from. `answer` decides what a request means.
"""

from __future__ import annotations

import logging
from collections import deque
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
from kshim.network.first_bytes import stranger
from kshim.network.frames import FrameError, Frames, Sent, framed
from kshim.network.intake import MODEST_BYTES
from kshim.network.shared import Response, Shared
from kshim.network.states import NEXT, Event, State, Wait
from kshim.storage.clock import Timer
from kshim.turns import Turn
from kshim.turns.promise import Afterwards, Promise
from kshim.turns.rounds import ROUND_S

if TYPE_CHECKING:
    from kshim.network.gate import Server

logger = logging.getLogger(__name__)

MAX_IN_FLIGHT = 64
# Limit of unanswered frames and waiting replies together; a single one may exceed it.
MAX_HELD_BYTES = 16 * 1024 * 1024
# The replies of one turn leave in one write. More than so many bytes are written before the turn ends: the
# transport then reports whether the client reads them, before more requests are answered.
WRITE_BYTES = 64 * 1024
ENDED = (State.CLOSING, State.LOST)


class InFlight(Turn):
    """A request whose reply has not left."""

    __slots__ = ("done", "held_bytes", "reply")

    def __init__(self) -> None:
        self.fired = self.is_alone = False  # set here, not by the bases: every request makes one
        self._watchers = self.made = None
        self.done = False
        self.reply: Response = None
        self.throttle_ms = self.held_bytes = 0


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
        self._state = State.READING
        self._beyond: Beyond | None = None
        self._in_flight: deque[InFlight] = deque()
        self._held_bytes = 0
        self._outgoing: list[bytes] = []  # the replies of this turn
        self._outgoing_bytes = 0
        self._unread_bytes = 0  # held by the transport while the client does not read
        self._in_turn = False  # True inside _read_ahead, which sends the replies at its end
        self._cut_bytes = 0  # what has arrived of an incomplete frame
        self._waits: set[Wait] = set()
        self._refusal_delay_s = 0.0  # the delay before bytes that are no request close the connection
        self._mute_timer: Timer | None = None  # set while the client is beyond a quota

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
        self._idle_timer = self._watch_idleness()
        self.shared.unread.holders.add(self)
        self._made(self)

    def dataReceived(self, data: bytes) -> None:
        self._frames.receive(data)
        self._received()

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """Return memory for the next bytes, which the transport then does not pass to dataReceived; see
        Frames.
        """
        return self._frames.room(arrived) if self._state is State.READING else None

    def filled(self, received: int) -> None:
        """Note that the transport has received so many bytes into `room()`."""
        self._frames.filled(received)
        self._received()

    def _received(self) -> None:
        self.active_at = self.shared.clock.seconds()
        self._read_ahead()
        if self._cut_bytes or self._frames.cut_bytes:
            self._count_cut()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._happens(Event.IS_LOST)
        self.client.is_gone = True
        self.shared.unread.holders.discard(self)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._mute_timer is not None:
            self._mute_timer.cancel()
            self._mute_timer = None
        self._forget_requests()
        self._all_read()
        self._lost(self)
        if self._beyond is not None:
            self._beyond.close()

    def pauseProducing(self) -> None:
        """Stop reading: the transport's buffer is full, as the client does not read."""
        self._happens(Event.STALLS)
        if self._beyond is not None:
            self._beyond.pause()

    def resumeProducing(self) -> None:
        """Go on: the client has read what the transport held."""
        self._all_read()
        self._happens(Event.READS)
        if self._mute_timer is not None:
            self._happens(Event.MUTES)
        self._look_for_room()
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
        held_bytes = self._held_bytes + self._unread_bytes + self._cut_bytes
        timer = self._mute_timer
        throttled_s = 0.0 if timer is None else timer.getTime() - self.shared.clock.seconds()
        return SeenConnection(
            self.client, self._state, len(self._in_flight), held_bytes, self.active_at, throttled_s
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
        return self._state not in ENDED and not self._outgoing

    @property
    def left_bytes(self) -> int:
        return self._frames.left_bytes if self._state is State.READING else 0

    def passed(self, passed_bytes: int) -> None:
        self.active_at = self.shared.clock.seconds()
        self._frames.passed(passed_bytes)

    def is_next(self, turn: Turn) -> bool:
        return bool(self._in_flight) and self._in_flight[0] is turn

    def send_part(self, data: bytes | memoryview) -> None:
        if self._state in ENDED:
            return
        self._send()
        self.active_at = self.shared.clock.seconds()
        self.transport.send_at_once((data,))
        if self._state is State.STALLED:
            self._unread_bytes += len(data)
            self.shared.unread.bytes += len(data)

    def refuse_lost(self, why: str) -> None:
        self._refuse(Refused(f"{self.client.address}: {why}", once=why))

    # ---- waiting

    def wait(self, reason: Wait) -> None:
        """Read no requests until `go_on` is called with the same reason."""
        self._waits.add(reason)
        self._happens(Event.FILLS)

    def go_on(self, reason: Wait) -> None:
        """Read requests again, unless there is another reason to wait."""
        self._waits.discard(reason)
        self._look_for_room()
        self._read_ahead()

    def _mute(self, throttle_ms: int) -> None:
        """Begin no request until the time is over: the client is beyond a quota (KIP-219)."""
        throttle_s = throttle_ms / 1000
        if self._mute_timer is None:
            self._mute_timer = self.shared.clock.callLater(throttle_s, self._unmute)
        elif self._mute_timer.getTime() < self.shared.clock.seconds() + throttle_s:
            self._mute_timer.reset(throttle_s)
        self._happens(Event.MUTES)

    def _unmute(self) -> None:
        self._mute_timer = None
        self._happens(Event.UNMUTES)
        self._look_for_room()
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
        rounds, seconds = self.shared.rounds, self.shared.clock.seconds
        began_s = now_s = seconds()
        left_s, share_s = ROUND_S - rounds.used_s, rounds.share_s
        until_s = began_s + (left_s if left_s < share_s else share_s)
        self._in_turn = True
        try:
            while self._state is State.READING:
                if now_s >= until_s:
                    self._stand_in_line(is_fresh=now_s - began_s < share_s)
                    break
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._request(frame)
                if self._outgoing_bytes >= WRITE_BYTES:
                    self._send()
                now_s = seconds()
        except FrameError as error:
            self._refuse_bytes(error)
        finally:
            self._in_turn = False
        self._send()
        rounds.used_s += now_s - began_s
        if rounds.used_s >= ROUND_S:
            rounds.end()
        if beyond is not None:
            beyond.flush()

    def _send_parts(self, beyond: Beyond) -> None:
        """Send on the received parts of a request that was begun."""
        while self._state is State.READING and (part := self._frames.next_part()) is not None:
            beyond.send_part(part)

    def _stand_in_line(self, *, is_fresh: bool) -> None:
        """Wait until others have had their turn, then read on."""
        self.wait(Wait.ROUND)
        self.shared.rounds.stand_in_line(self._take_turn, is_fresh=is_fresh)

    def _take_turn(self) -> None:
        self.go_on(Wait.ROUND)

    def _request(self, frame: bytes | bytearray) -> None:
        """Answer one request. Its reply is sent at once, unless an earlier request still waits for one."""
        if self._in_flight:
            self._in_flight[-1].fire()
        request = InFlight()
        if len(frame) > MODEST_BYTES:
            request.fire()  # so large a request is not parked
        try:
            answer = self._server.answer(frame, self.client, request)
        except Exception as error:
            self._refuse(error)
            return
        if isinstance(answer, Promise):
            self._hold(request, len(frame))
            answer.listen(self._answered, request)
            return
        if request.throttle_ms:
            self._mute(request.throttle_ms)
        if self._in_flight:
            request.done, request.reply = True, answer
            self._hold(request, len(answer or b""))
        else:
            self._put(answer)

    def _hold(self, request: InFlight, held_bytes: int) -> None:
        """Keep a request until its reply may leave."""
        request.held_bytes = held_bytes
        self._held_bytes += held_bytes
        self.shared.unread.bytes += held_bytes
        self._in_flight.append(request)
        if not self._has_room():
            self._happens(Event.FILLS)

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
        request.done, request.reply = True, reply
        if request.throttle_ms:
            self._mute(request.throttle_ms)
        waiting = self._in_flight
        if waiting and waiting[0] is not request:
            more_bytes = len(reply or b"") - request.held_bytes
            request.held_bytes += more_bytes
            self._held_bytes += more_bytes
            self.shared.unread.bytes += more_bytes
        while waiting and waiting[0].done:
            first = waiting.popleft()
            self._held_bytes -= first.held_bytes
            self.shared.unread.bytes -= first.held_bytes
            self._put(first.reply)
        if self._beyond is not None:
            self._beyond.go_on()
        return self._move_on

    def _move_on(self) -> None:
        """Send the queued replies, and read further requests."""
        self._look_for_room()
        if not self._in_turn:
            self.active_at = self.shared.clock.seconds()
            self._read_ahead()

    def _put(self, reply: Response) -> None:
        """Queue a reply for the end of this turn; None if the request has no reply."""
        if reply is not None and type(reply) is not Sent:
            self._outgoing += framed(reply)
            self._outgoing_bytes += len(reply)

    def _send(self) -> None:
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            outgoing_bytes, self._outgoing_bytes = self._outgoing_bytes, 0
            if self._in_flight:  # replies to these may also come in this turn
                self.transport.writeSequence(outgoing)
            else:
                self.transport.send_at_once(outgoing)
            if self._state is State.STALLED:
                self._unread_bytes += outgoing_bytes
                self.shared.unread.not_read(outgoing_bytes)

    def _all_read(self) -> None:
        self.shared.unread.bytes -= self._unread_bytes
        self._unread_bytes = 0

    def unread_bytes(self) -> int:
        """Return the bytes of answers that the client has not read; stop counting those that it has read."""
        left_bytes: int = min(self._unread_bytes, self.transport.unsent_bytes)
        self.shared.unread.bytes -= self._unread_bytes - left_bytes
        self._unread_bytes = left_bytes
        return left_bytes + sum(len(request.reply or b"") for request in self._in_flight if request.done)

    def read_bytes(self) -> int:
        """Return how many bytes the client has read late, after they had to wait."""
        read_bytes: int = self.transport.sent_later_bytes
        return read_bytes

    # ---- states

    def _happens(self, event: Event) -> None:
        """Change the state as `NEXT` says; the transport reads only while requests are read."""
        before = self._state
        after = self._state = NEXT[before].get(event, before)
        if after is before or after is State.CLOSING or after is State.LOST:
            return
        if after is State.READING:
            self.transport.resumeProducing()
        elif before is State.READING:
            self.transport.pauseProducing()

    def _has_room(self) -> bool:
        waiting = self._in_flight
        if self._waits or (waiting and waiting[-1].is_alone and not waiting[-1].done):
            return False
        return len(waiting) < MAX_IN_FLIGHT and self._held_bytes < MAX_HELD_BYTES

    def _look_for_room(self) -> None:
        if self._state is State.FULL and self._has_room():
            self._happens(Event.HAS_ROOM)

    def _refuse(self, error: BaseException) -> None:
        """Log why, and close the connection, once. If the fault is ours, log the traceback, too."""
        if self._state in ENDED:
            return
        if not isinstance(error, Refused):
            logger.error("closed the connection of %s: %r", self.client.address, error, exc_info=error)
        else:
            ours = error.__cause__ if error.level >= logging.ERROR else None
            logger.log(self._level(error), "closed the connection of %s", error, exc_info=ours)
            if error.last_words is not None and len(self._in_flight) <= 1:  # replies leave in order
                self._put(error.last_words)
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
        if who.answer and not self._in_flight:
            self._outgoing.append(who.answer)
        why = who.mistake.line(text=error.start.decode("latin-1"))
        self._refuse(Refused(f"{self.client.address}: {why}", once=who.mistake))

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
        self._all_read()
        self.transport.abortConnection()

    def drain(self) -> None:
        """Read no further requests, and ask those in flight to finish."""
        self._happens(Event.DRAINS)
        for request in list(self._in_flight):
            request.fire()

    def close(self) -> None:
        """Send the replies that are ready, then close without waiting for requests in flight."""
        self._send()
        self._happens(Event.CLOSES)
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
        waiting, self._in_flight = self._in_flight, deque()
        self.shared.unread.bytes -= self._held_bytes
        self._held_bytes = 0
        for request in waiting:
            request.fire()

    def _watch_idleness(self) -> Any:
        """Close the connection if it has been idle too long, else schedule the next look. Requests move no
        timer.
        """
        idle_s = self.shared.max_idle_ms / 1000
        if idle_s < 0:
            return None
        left_s = self.active_at + idle_s - self.shared.clock.seconds()
        if left_s > 0:
            return self.shared.clock.callLater(left_s, self._look_at_idleness)
        if self._state is State.CLOSING:
            # The client still has not read its last replies.
            self.transport.abortConnection()
            return None
        logger.debug("%s: idle for %d ms, closed", self.client.address, self.shared.max_idle_ms)
        if self.shared.gates is not None:
            self.shared.gates.idle(self.client)
        self.active_at = self.shared.clock.seconds()
        self.close()
        return self._watch_idleness()

    def _look_at_idleness(self) -> None:
        self._idle_timer = None
        self._idle_timer = self._watch_idleness()
