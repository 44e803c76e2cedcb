"""Clients with a quota are as fast as it allows, and others are not slowed down, on both servers."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from integration import apache_kafka
from integration.differential.quotas.limited import Limited
from integration.support.awaiting import wait_until
from integration.support.java import compile_with
from integration.support.server import COMMAND, Server

JAVA = Path(__file__).with_name("PacedClient.java")
FULL = "full"
RECORD = b"x" * 2000
COMMANDS = {"kshim": COMMAND, "apache-kafka": apache_kafka.COMMAND}


class Plan(NamedTuple):
    """The duration of a measurement."""

    samples: int
    """quota.window.num. The clients are paced for so many seconds, and one more."""
    measured_s: int
    bytes_per_s: int
    tolerance: float


SHORT = Plan(4, 8, 200_000, 0.2)
LONG = Plan(11, 30, 1_000_000, 0.05)


class Paced:
    """A paced client."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("w") as stderr:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.told: list[tuple[float, int]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            seconds, count = line.split()
            self.told.append((float(seconds), int(count)))

    def wait(self, until_s: float) -> None:
        """Wait until it has run for so long."""
        wait_until(
            lambda: (self.told and self.told[-1][0] > until_s) or self._process.poll() is not None,
            until_s + 30,
            f"{self.name} runs for {until_s} s",
        )
        assert self._process.poll() is None, self._log.read_text()

    def bytes_per_s(self, from_s: float, for_s: float) -> float:
        began_s, before = next(each for each in self.told if each[0] >= from_s)
        ended_s, after = next(each for each in self.told if each[0] >= from_s + for_s)
        return (after - before) / (ended_s - began_s)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


class Fast:
    """A producer without a quota."""

    def __init__(self, bootstrap: str, topic: str, **settings: Any) -> None:
        self.throttled: list[Any] = []
        own = {"bootstrap.servers": bootstrap, "client.id": "fast", "throttle_cb": self.throttled.append}
        self._topic = topic
        self._producer = Producer({**own, **settings})

    def seconds(self, total_bytes: int) -> float:
        """The seconds that sending these bytes takes."""
        began_s = time.monotonic()
        for _ in range(total_bytes // len(RECORD)):
            while True:
                try:
                    self._producer.produce(self._topic, RECORD)
                    break
                except BufferError:
                    self._producer.poll(0.01)
        assert self._producer.flush(60) == 0
        return time.monotonic() - began_s


@pytest.fixture
def new_paced(class_path: str, tmp_path: Path) -> Iterator[Callable[..., Paced]]:
    clients: list[Paced] = []
    java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", compile_with(class_path, JAVA), "PacedClient"]
    programs = {"librdkafka": [sys.executable, "-m", f"{__package__}.librdkafka"], "java": java}

    def new(client: str, *arguments: object) -> Paced:
        command = [*programs[client], *map(str, arguments)]
        clients.append(Paced(f"{client} {arguments[3]}", command, tmp_path / f"client{len(clients)}.log"))
        return clients[-1]

    yield new
    for client in clients:
        client.end()


RUNS = [
    pytest.param("kshim", SHORT, id="kshim-short", marks=pytest.mark.few),
    pytest.param("kshim", LONG, id="kshim"),
    pytest.param("apache-kafka", LONG, id="apache-kafka"),
]


@pytest.mark.parametrize(("server_name", "plan"), RUNS)
def test_the_rate_is_the_quota(
    new_paced: Callable[..., Paced], tmp_path: Path, server_name: str, plan: Plan
) -> None:
    options = ["--set", f"quota.window.num={plan.samples}"]
    server = Server(tmp_path / "server", options, command=COMMANDS[server_name]).start()
    try:
        _measure(server, new_paced, plan)
    finally:
        server.stop()


def _measure(server: Server, new_paced: Callable[..., Paced], plan: Plan) -> None:
    limited = Limited(server)
    paced_s = plan.samples + 1
    kinds = list(itertools.product(("librdkafka", "java"), ("produce", "consume")))
    for topic in (FULL, "fast"):
        limited.create(topic)
    for client, what in kinds:
        limited.create(f"{client}-{what}")
        quotas = {"producer_byte_rate": plan.bytes_per_s, "consumer_byte_rate": plan.bytes_per_s}
        limited.set(([("client-id", f"{client}-{what}")], quotas))
    enough_bytes = plan.bytes_per_s * (paced_s + plan.measured_s + 10)
    small_batches = {"batch.size": 4_500}  # Kafka cuts the last one of an answer, and the rest comes again
    Fast(server.bootstrap, FULL, **small_batches).seconds(enough_bytes)
    fast = Fast(server.bootstrap, "fast")
    alone_s = fast.seconds(enough_bytes)
    clients = []
    for client, what in kinds:
        topic = f"{client}-produce" if what == "produce" else FULL
        clients.append(
            new_paced(client, server.bootstrap, f"{client}-{what}", topic, what, plan.bytes_per_s, paced_s)
        )
    for each in clients:
        each.wait(paced_s + 1)
    beside_s = fast.seconds(enough_bytes)
    for each in clients:
        each.wait(paced_s + 1 + plan.measured_s + 1)
    rates = {each.name: each.bytes_per_s(paced_s + 1, plan.measured_s) / plan.bytes_per_s for each in clients}
    print(rates, alone_s, beside_s, file=sys.stderr)
    assert all(abs(rate - 1) <= plan.tolerance for rate in rates.values()), rates
    assert not fast.throttled
    assert enough_bytes / beside_s > 5 * plan.bytes_per_s, (alone_s, beside_s)
