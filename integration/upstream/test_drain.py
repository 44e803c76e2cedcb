"""One of two kshim is drained while clients produce and consume: they go on at the other one."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server, run_to_end

PARTITIONS = 3
WITHIN_S = 40
ENDS_WITHIN_S = 8.0
GAP_S = 5.0
"""A record takes no longer, on a busy machine too."""
SHARDS = 50


@pytest.fixture
def pair(kafka: Server, tmp_path: Path) -> Iterator[list[Server]]:
    options = ["--upstream", kafka.bootstrap, "--http", "127.0.0.1:0"]
    servers = [Server(tmp_path / f"kshim{number}", options) for number in (1, 2)]
    for server in servers:
        server.start()
    wait_until(lambda: all(leads(each) == SHARDS // 2 for each in servers), 30, "each leads a half")
    yield servers
    for server in servers:
        if server.running:
            server.kill()


def leads(server: Server) -> int:
    lines = [line for line in server.log if f" of {SHARDS} shards of __kshim_groups" in line]
    return int(lines[-1].split("will lead ")[1].split()[0]) if lines else 0


def get(server: Server, target: str) -> tuple[int, dict[str, object]]:
    url = f"http://{server.stdout[1].split()[2]}{target}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def connections(server: Server) -> int:
    found = get(server, "/connections")[1]["connections"]
    assert isinstance(found, list)
    return len(found)


class Traffic:
    """A producer that numbers its records, and a group that reads them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        options = {"bootstrap.servers": bootstrap, "client.id": topic}
        self._producer = Producer(options | {"linger.ms": 0, "acks": "all"})
        self._consumer = Consumer(
            options | {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self._consumer.subscribe([topic])
        self.longest_s = 0.0
        """The longest time from a record to its acknowledgement."""
        self.errors: list[str] = []
        self.sent = 0
        self.read: list[int] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._produce, self._consume)]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        while not self._is_over.is_set():
            began_s = time.monotonic()

            def acknowledged(error: object, _: object, began_s: float = began_s) -> None:
                self.longest_s = max(self.longest_s, time.monotonic() - began_s)
                if error is not None:
                    self.errors.append(str(error))

            self._producer.produce(self.topic, b"%d" % self.sent, on_delivery=acknowledged)
            self.sent += 1
            self._producer.flush(WITHIN_S)
            self._is_over.wait(0.02)

    def _consume(self) -> None:
        while not self._is_over.is_set() or len(self.read) < self.sent:
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.read.append(int(message.value() or b"-1"))
                self._consumer.commit(message, asynchronous=False)
        self._consumer.close()

    def wait_further(self) -> None:
        sent, read = self.sent, len(self.read)
        wait_until(lambda: self.sent > sent + 10 and len(self.read) > read + 10, WITHIN_S, "records go on")

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(WITHIN_S)


def test_clients_go_on_at_the_other_kshim(
    kafka: Server, pair: list[Server], topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, PARTITIONS)
    admin.close()
    traffic = Traffic(",".join(each.bootstrap for each in pair), topic)
    try:
        for number in range(2):
            gone, other = pair[number], pair[1 - number]
            traffic.wait_further()
            done = run_to_end("cluster", "--data-dir", str(gone.data_dir), "drain", cwd=gone.data_dir)
            assert done.returncode == 0, done.stderr
            assert "the other kshim have the groups" in done.stdout
            assert leads(other) == SHARDS
            status, said = get(gone, "/readyz")
            assert (status, said["error"]) == (
                503,
                "this kshim hands over its groups and its clients, as it is to end",
            )
            traffic.wait_further()
            began_s = time.monotonic()
            assert gone.stop() == 0
            assert time.monotonic() - began_s < ENDS_WITHIN_S
            traffic.wait_further()
            gone.restart()
            wait_until(lambda: all(leads(each) == SHARDS // 2 for each in pair), 30, "each leads a half")
    finally:
        traffic.end()
    with capsys.disabled():
        print(f"\ndrained: {traffic.sent} records, the slowest took {traffic.longest_s:.2f} s")
    assert traffic.errors == []
    assert sorted(traffic.read) == list(range(traffic.sent)), "each is read once"
    assert traffic.longest_s < GAP_S


def test_a_signal_drains_before_the_end(kafka: Server, pair: list[Server]) -> None:
    gone, other = pair
    assert gone.stop() == 0
    log = "\n".join(gone.log)
    assert "has handed over its shards and" in log
    assert "Traceback" not in log
    assert leads(other) == SHARDS
    assert other.stop() == 0
    assert "hand" not in "\n".join(line for line in other.log if "shards and" in line)
