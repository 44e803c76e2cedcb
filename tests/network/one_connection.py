"""One connection over a transport in memory, with a test in the server's place."""

from collections.abc import Callable

from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kshim.callers import Client
from kshim.callers.once import Once
from kshim.configs.endpoint import Endpoint
from kshim.network.connection import Connection
from kshim.network.intake import Intake
from kshim.network.shared import Shared
from kshim.turns import Turn
from kshim.turns.promise import Promise
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread
from schemas.pieces import Pieces
from tests.network.frames import frame
from tests.network.transport import Transport

Reply = bytes | Pieces | None


class Server:
    """A server with one connection. A test answers each request by hand, or `answers` does at once."""

    def __init__(
        self, *, max_idle_ms: int = -1, max_request_bytes: int = 1024, advertised: Endpoint | None = None
    ) -> None:
        self.clock = Clock()
        self.requests: list[bytes] = []
        self.signals: list[Turn] = []
        self.parked: dict[bytes, Promise[Reply]] = {}
        self.answers: Callable[[bytes], Reply] | None = None
        self.answers_alone = b""
        self.throttles: dict[bytes, int] = {}
        rounds = Rounds(self.clock)
        self.unread = Unread(self.clock, rounds)
        self.gone: list[Connection] = []
        shared = Shared(
            answer=self.answer,
            clock=self.clock,
            rounds=rounds,
            unread=self.unread,
            intake=Intake(self.clock, self.unread, 1 << 20),
            once=Once(self.clock),
            max_request_bytes=max_request_bytes,
            max_idle_ms=max_idle_ms,
            advertised=advertised,
        )
        self.connection = Connection(shared, lambda _: None, self.gone.append)
        self.transport = Transport()
        self.connection.makeConnection(self.transport)

    def answer(self, request_frame: bytes | memoryview, client: Client, turn: Turn) -> Reply | Promise[Reply]:
        request = bytes(request_frame)
        self.requests.append(request)
        self.signals.append(turn)
        turn.is_alone = request == self.answers_alone
        turn.throttle_ms = self.throttles.get(request, 0)
        if self.answers:
            return self.answers(request)
        self.parked[request] = Promise()
        return self.parked[request]

    def send(self, *payloads: bytes) -> None:
        self.connection.dataReceived(b"".join(map(frame, payloads)))

    def sent(self) -> bytes:
        value: bytes = self.transport.value()
        self.transport.clear()
        return value

    def lose(self) -> None:
        self.connection.connectionLost(Failure(ConnectionDone()))
