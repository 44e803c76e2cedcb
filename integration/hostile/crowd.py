"""Ten thousand connections to one server: most are idle, some send a request byte by byte, some are busy.

    python -m integration.hostile.crowd [--idle 9000] [--slow 500] [--busy 500] [--seconds 10]

Prints what a connection takes of the server's memory, and how long the busy ones wait: each of them sends a
Heartbeat every half second. A half of the wait may be this program's own, as it has one thread for all.
"""

from __future__ import annotations

import argparse
import heapq
import resource
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from integration.hostile.memory import own_bytes
from integration.support.server import Server
from kshim.testing.wire import framed
from schemas.messages.heartbeat import HeartbeatRequest

HEARTBEAT = framed(4, HeartbeatRequest(group_id="crowd", generation_id=1, member_id="nobody"))
BUSY_PAUSE_S = 0.5
SLOW_PAUSE_S = 0.1
DESCRIPTORS_TO_SPARE = 100


class Crowd:
    """Connections to one server."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._selector = selectors.DefaultSelector()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._asked_s: dict[socket.socket, float] = {}
        self.waits_ms: list[float] = []

    def connect(self, count: int) -> Iterator[socket.socket]:
        for _ in range(count):
            connection = socket.create_connection(self._address)
            connection.setblocking(False)
            yield connection

    def add_slow(self, connection: socket.socket) -> None:
        """Send a request byte by byte."""
        left = bytearray(HEARTBEAT)

        def send() -> None:
            if left:
                connection.send(left[:1])
                del left[:1]
                self._later(SLOW_PAUSE_S, send)

        self._later(SLOW_PAUSE_S, send)

    def add_busy(self, connection: socket.socket, share: float) -> None:
        """Send requests again and again. share: the part of the first pause to leave out, from 0 to 1."""
        self._selector.register(connection, selectors.EVENT_READ)

        def ask() -> None:
            if connection not in self._asked_s:
                self._asked_s[connection] = time.perf_counter()
                connection.send(HEARTBEAT)
            self._later(BUSY_PAUSE_S, ask)

        self._later(BUSY_PAUSE_S * (1 - share), ask)

    def run(self, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while (now := time.perf_counter()) < until:
            while self._due and self._due[0][0] <= now:
                heapq.heappop(self._due)[2]()
            for key, _ in self._selector.select(0.001):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                assert connection.recv(1000), "the server has closed a connection"
                self.waits_ms.append(1000 * (time.perf_counter() - self._asked_s.pop(connection)))

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time.perf_counter() + seconds, id(do), do))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m integration.hostile.crowd", description=__doc__)
    parser.add_argument("--idle", type=int, default=9000)
    parser.add_argument("--slow", type=int, default=500)
    parser.add_argument("--busy", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    total = arguments.idle + arguments.slow + arguments.busy
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if total + DESCRIPTORS_TO_SPARE > limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(total + DESCRIPTORS_TO_SPARE, hard), hard))
    with tempfile.TemporaryDirectory(prefix="kshim-crowd-") as directory:
        server = Server(Path(directory) / "data").start()
        crowd = Crowd(server.host, server.port)
        before_bytes = own_bytes(server.process.pid)
        began = time.perf_counter()
        idle = list(crowd.connect(arguments.idle))
        for connection in (slow := list(crowd.connect(arguments.slow))):
            crowd.add_slow(connection)
        for number, connection in enumerate(busy := list(crowd.connect(arguments.busy))):
            crowd.add_busy(connection, number / arguments.busy)
        connected_s = time.perf_counter() - began
        crowd.run(arguments.seconds)
        took_bytes = own_bytes(server.process.pid) - before_bytes
        cuts = statistics.quantiles(crowd.waits_ms, n=100)
        print(f"{len(idle) + len(slow) + len(busy):,} connections in {connected_s:.1f} s")
        print(f"memory: {took_bytes / 1e6:.0f} MB, {took_bytes / total / 1000:.1f} KB a connection")
        worst_ms = max(crowd.waits_ms)
        print(
            f"{len(crowd.waits_ms):,} heartbeats of the busy ones: p50 {cuts[49]:.1f} ms, "
            f"p99 {cuts[98]:.1f} ms, worst {worst_ms:.1f} ms"
        )
        assert server.stop() == 0


if __name__ == "__main__":
    main()
