"""`kshim serve --http`, as a user runs it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from integration.serve.refusals import assert_refused
from integration.support.awaiting import wait_until
from integration.support.server import Server, run_to_end
from kshim.testing.cluster import Cluster
from kshim.testing.wire import Wire
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

pytestmark = pytest.mark.kshim_only("Apache Kafka has no such listener")

SOON_S = 3.0
"""How soon an event comes, on a busy machine too; tests/http holds the server to 1 s."""


def http_address(server: Server) -> tuple[str, int]:
    wait_until(lambda: len(server.stdout) > 1, 10, "the second line")
    word, what, address = server.stdout[1].split()
    assert (word, what) == ("kshim", "http")
    host, _, port = address.rpartition(":")
    return host, int(port)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("http") / "data", ["--http", "127.0.0.1:0"]).start()
    yield server
    assert server.stop() == 0, server.report()


def get(server: Server, target: str) -> Any:
    connection = http.client.HTTPConnection(*http_address(server), timeout=10)
    connection.request("GET", target)
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    found = json.load(reply)
    connection.close()
    return found


def commit(server: Server, group_id: str, topic: str, offset: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    wire = Wire(server.host, server.port, timeout_s=10)
    (answer,) = wire.ask(6, OffsetCommitRequest(group_id=group_id, topics=topics)).topics
    assert answer.partitions[0].error_code == 0
    wire.close()


def test_it_is_served_beside_kafka_s_protocol(serving: Server) -> None:
    wait_until(lambda: get(serving, "/readyz") == {"status": "ready"}, 10, "it is ready")
    names = [topic["topic"] for topic in get(serving, "/topics")["topics"]]
    assert "__consumer_offsets" in names


def test_an_event_comes_soon(serving: Server) -> None:
    cluster = Cluster(serving.bootstrap)
    topic = cluster.topic()
    cluster.produce(topic, [b"a", b"b"])
    commit(serving, "watched", topic, 0)
    events = socket.create_connection(http_address(serving), timeout=10)
    events.sendall(b"GET /events?group=watched HTTP/1.1\r\nHost: localhost\r\n\r\n")
    received = events.makefile("rb")

    def lag() -> Any:
        while not (line := received.readline()).startswith(b"data: "):
            assert line
        return json.loads(line.removeprefix(b"data: "))[0]["lag"]

    assert lag() == 2
    began = time.monotonic()
    commit(serving, "watched", topic, 1)
    assert lag() == 1
    assert time.monotonic() - began < SOON_S
    events.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "8080"], ["--http=8080", "HOST:PORT"]),
        (["--http", "0.0.0.0:0"], ["http.listener=0.0.0.0:0", "http.token", "127.0.0.1:8080"]),
        (["--http", "127.0.0.1:0", "--set", "http.token=a b"], ["http.token", "without blanks"]),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, options: list[str], said: list[str]) -> None:
    assert_refused(run_to_end("serve", "--data-dir", ":memory:", *options, cwd=tmp_path), *said)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ["--listen", "127.0.0.1:0", "--data-dir", ":memory:", "--http", address]
        assert_refused(run_to_end("serve", *options, cwd=tmp_path), f"cannot listen at {address} for HTTP")


def probe(address: tuple[str, int], pid: int, path: str) -> float:
    """Ask for a path; how many ms of processor time the server took until the answer."""
    began_s = processor_s(pid)
    with socket.create_connection(address, timeout=20) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert client.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
    return (processor_s(pid) - began_s) * 1000


def processor_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_slow_clients_do_not_keep_a_probe_waiting(sent: bytes, tmp_path: Path) -> None:
    """Clients that send nothing, half a request, or that do not read."""
    server = Server(tmp_path / "data", ["--http", "127.0.0.1:0"]).start()
    Cluster(server.bootstrap).topic(partitions=3000)
    address = http_address(server)
    probe(address, server.process.pid, "/healthz")
    slow = []
    for _ in range(300):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(address)
        with suppress(ConnectionError):
            client.sendall(sent)
        slow.append(client)
    for path in ("/healthz", "/readyz"):
        took_ms = [probe(address, server.process.pid, path) for _ in range(10)]
        assert sorted(took_ms)[5] < 100, (path, took_ms)
    for client in slow:
        client.close()
    assert server.stop() == 0, server.report()
