"""Nodes of Apache Kafka, to each of which several ways lead: a plain one, and some that a test can break."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration.apache_kafka import COMMAND
from integration.apache_kafka.__main__ import new_cluster_id
from integration.support.ports import Slot
from integration.support.server import Server, set_options

PLAIN = "PLAINTEXT"
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Way:
    """Passes connections on to a port of this machine, until a test breaks it."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._open = threading.Event()
        self._open.set()
        self._is_cut = False
        self._sides: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hole(self) -> None:
        """Take connections and bytes, as a network does that loses packets, and pass nothing on."""
        self._open.clear()

    def cut(self) -> None:
        """Reset all connections, and each new one at once."""
        self._is_cut = True
        for each in list(self._sides):
            _shut(each)

    def mend(self) -> None:
        self._is_cut = False
        self._open.set()

    def close(self) -> None:
        self._listener.close()
        self._open.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_cut:
                    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
                    near.close()
                else:
                    threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        self._open.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            near.close()
            return
        pair = {near, far}
        self._sides |= pair
        back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
        back.start()
        self._pass(near, far)
        back.join()
        self._sides -= pair
        for each in pair:
            each.close()

    def _pass(self, side: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := side.recv(65536):
                self._open.wait()
                other.sendall(data)
        for each in (side, other):
            _shut(each)


def _shut(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)


class NodesWithWays:
    """A cluster of nodes that are brokers and controllers, with node ids from 1 on.

    Beside the plain way, each name in `names` is a way to each node that a test can break.
    """

    def __init__(
        self, directory: Path, count: int, names: Sequence[str], settings: dict[str, object] | None = None
    ) -> None:
        """settings: properties of all nodes."""
        self._controllers = controllers = Slot()
        cluster = [
            *("--cluster-id", new_cluster_id()),
            *("--controllers", ",".join(str(controllers.port + number) for number in range(count))),
        ]
        self._slots = {node_id: Slot() for node_id in range(1, count + 1)}
        self.ways = {
            name: {node_id: Way(slot.port + index) for node_id, slot in self._slots.items()}
            for index, name in enumerate(names, 1)
        }
        """By the way's name, and by node id."""
        self.servers = {
            node_id: Server(
                directory / f"node{node_id}",
                [
                    *(*cluster, "--node-id", str(node_id)),
                    *set_options({**self._listeners(node_id), **(settings or {})}),
                ],
                command=COMMAND,
                listeners=(PLAIN, *names),
            )
            for node_id in self._slots
        }
        """By node id."""

    def _listeners(self, node_id: int) -> dict[str, object]:
        ports = {PLAIN: self._slots[node_id].port} | {
            name: ways[node_id].port for name, ways in self.ways.items()
        }
        return {
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in ("CONTROLLER", *ports)
            ),
            "inter.broker.listener.name": PLAIN,
            "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        }

    def start(self) -> NodesWithWays:
        """Start all at once: the first ones are ready only when most of them run."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda each: each[0].start_at(each[1]), self._pairs()))
        return self

    def _pairs(self) -> list[tuple[Server, Slot]]:
        return [(server, self._slots[node_id]) for node_id, server in self.servers.items()]

    @property
    def bootstrap(self) -> str:
        """The addresses of the plain way."""
        return ",".join(f"127.0.0.1:{slot.port}" for slot in self._slots.values())

    def bootstrap_by(self, name: str) -> str:
        """The addresses of a way that a test can break."""
        return ",".join(f"127.0.0.1:{way.port}" for way in self.ways[name].values())

    def kill(self) -> None:
        for ways in self.ways.values():
            for way in ways.values():
                way.close()
        for server in self.servers.values():
            if server.running:
                server.kill()
