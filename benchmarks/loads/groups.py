"""The cost of groups that only send heartbeats, every 3 s as clients do by default.

Every member is a raw connection, and one process serves them all: 1,000 groups of ten send 3,333 Heartbeats a
second, for which an epoll loop needs a tenth of a core.
"""

from __future__ import annotations

import selectors
import struct
import time
from collections import deque

from benchmarks.comparing import percentile
from benchmarks.generator import Load
from benchmarks.loads.joining import Group
from benchmarks.processor import Measured, Window
from benchmarks.raw import SOFTWARE, Connection
from benchmarks.servers import Target
from kshim.testing.wire import framed
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest

MEMBERS = 10
INTERVAL_S = 3.0
LEAST_WINDOW_S = 9.0
"""Every member sends at least three heartbeats."""
RECEIVE_BYTES = 4096
_ANSWER = struct.Struct(">iiih")
"""Size, correlation id, throttle time, error code."""


class Beating:
    """A member that sends a Heartbeat when it is its turn."""

    def __init__(self, connection: Connection, frame: bytes) -> None:
        self.connection, self.frame = connection, frame
        self._sent_at: deque[float] = deque()

    def beat(self) -> None:
        self._sent_at.append(time.perf_counter())
        self.connection.send(self.frame)

    def answered_ms(self) -> list[float]:
        """The latencies of the answers that came: more than one if the server is late.

        Raises RuntimeError if an answer is an error, or if there is none.
        """
        data = self.connection.recv(RECEIVE_BYTES)
        if not data:
            raise RuntimeError("the broker closed a connection")
        now = time.perf_counter()
        for *_, error in _ANSWER.iter_unpack(data):
            if error:
                raise RuntimeError(f"the broker answered {ErrorCode(error).name}")
        return [(now - self._sent_at.popleft()) * 1e3 for _ in range(len(data) // _ANSWER.size)]


def members_of(group: Group) -> list[Beating]:
    return [
        Beating(
            connection,
            framed(
                1,
                HeartbeatRequest(
                    group_id=group.group_id, generation_id=group.generation_id, member_id=member_id
                ),
            ),
        )
        for connection, member_id in zip(group.connections, group.member_ids, strict=True)
    ]


class Rota:
    """Gives each member its turn once in INTERVAL_S, evenly."""

    def __init__(self, members: list[Beating]) -> None:
        self._turns = deque(members)
        self._pause_s = INTERVAL_S / len(members)
        self._next_at = time.perf_counter()
        self._unanswered = 0
        self._selector = selectors.DefaultSelector()
        for member in members:
            self._selector.register(member.connection, selectors.EVENT_READ, member)

    def run(self, until: float) -> list[float]:
        """The latencies of all answers until then."""
        took_ms = []
        while (now := time.perf_counter()) < until:
            while self._next_at <= now:
                self._turns[0].beat()
                self._turns.rotate(-1)
                self._unanswered += 1
                self._next_at += self._pause_s
            left_s = min(self._next_at, until) - time.perf_counter()
            took_ms += self._answered_ms(left_s)
        return took_ms

    def finish(self) -> None:
        """Wait for the last answers."""
        while self._unanswered:
            self._answered_ms(INTERVAL_S)

    def _answered_ms(self, timeout_s: float) -> list[float]:
        ready = self._selector.select(max(timeout_s, 0))
        answered_ms = [took_ms for key, _ in ready for took_ms in key.data.answered_ms()]
        self._unanswered -= len(answered_ms)
        return answered_ms


def groups(target: Target, load: Load, seconds: float) -> Measured:
    """So many `groups` of ten members. How long an answer takes says nothing where kshim parks heartbeats."""
    formed = Group.form(target.bootstrap, load["groups"], MEMBERS, load["software"])
    rota = Rota([member for group in formed for member in members_of(group)])
    rota.run(time.perf_counter() + INTERVAL_S)  # what came of joining is over then
    window_s = max(seconds, LEAST_WINDOW_S)
    with Window(target.pid) as window:
        took_ms = rota.run(time.perf_counter() + window_s)
    rota.finish()
    for group in formed:
        group.close()
    if len(took_ms) < load["groups"] * MEMBERS * (window_s // INTERVAL_S - 1):
        raise RuntimeError("not all members could send their heartbeats in time")
    figures = {}
    if load["software"] == SOFTWARE:
        figures = {"p50 ms": percentile(took_ms, 50), "p99 ms": percentile(took_ms, 99)}
    if window.server_cpu_s is not None:
        figures = {"% of a core": window.server_cpu_s / window.seconds * 100, **figures}
    return window.measured(len(took_ms), figures)
