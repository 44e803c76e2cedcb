"""Two processes count, one is killed and comes back with nothing on its disk: each record counts once."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer
from integration.support.server import Server

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
COUNTER = "integration.clients.quixstreams.counter"
KEYS = [f"key{number}" for number in range(12)]
PARTITIONS = 4
INTERVAL_S = 0.02
SETTLED_S = 90


class Feed:
    """Sends records of all keys in turn until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent: dict[str, int] = dict.fromkeys(KEYS, 0)
        self._producer = new_producer(bootstrap)
        self._topic = topic
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        for key in itertools.cycle(KEYS):
            if self._stopped.wait(INTERVAL_S):
                return
            self.sent[key] += 1
            self._producer.send(self._topic, key=key.encode(), value=b"x")

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.close()


class Counts:
    """The counts that the processes have sent on and committed."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.by_key: dict[str, list[int]] = defaultdict(list)
        self.latest: dict[str, str] = {}
        """Who has counted the last record, by key."""
        self._consumer = new_consumer(bootstrap, topic, isolation_level="read_committed")

    def read(self) -> Counts:
        for records in self._consumer.poll(timeout_ms=100).values():
            for record in records:
                counted = json.loads(record.value)
                self.by_key[record.key.decode()].append(counted["count"])
                self.latest[record.key.decode()] = counted["by"]
        return self

    def wait_for(self, *names: str) -> None:
        """Wait until the last records of all keys were counted by these, and by each of them."""
        wait_until(
            lambda: set(self.read().latest.values()) == set(names) and len(self.latest) == len(KEYS),
            SETTLED_S,
            lambda: f"counts of {names} only: {self.latest}",
        )

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def topics(broker: Server, topic: str) -> tuple[str, str]:
    """The topic whose records are counted, and the topic of the counts."""
    admin = Admin(broker.bootstrap)
    names = f"{topic}-in", f"{topic}-out"
    for name in names:
        admin.create_topic(name, PARTITIONS)
    admin.close()
    return names


@pytest.fixture
def feed(broker: Server, topics: tuple[str, str]) -> Iterator[Feed]:
    feed = Feed(broker.bootstrap, topics[0])
    yield feed
    feed.stop()


@pytest.fixture
def counts(broker: Server, topics: tuple[str, str]) -> Iterator[Counts]:
    counts = Counts(broker.bootstrap, topics[1])
    yield counts
    counts.close()


@pytest.fixture
def run(
    broker: Server, topic: str, topics: tuple[str, str], tmp_path: Path
) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts a process of that name, which has a directory of its own."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> subprocess.Popen[bytes]:
        arguments = [broker.bootstrap, topic, *topics, name, str(tmp_path / name)]
        processes.append(
            subprocess.Popen([sys.executable, "-m", COUNTER, *arguments], cwd=tmp_path, env=ENVIRONMENT)
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_a_killed_process(feed: Feed, counts: Counts, run: Callable[[str], subprocess.Popen[bytes]]) -> None:
    run("one")
    counts.wait_for("one")
    two = run("two")
    counts.wait_for("one", "two")
    two.kill()
    counts.wait_for("one")
    run("three")
    counts.wait_for("one", "three")
    feed.stop()
    wait_until(
        lambda: {key: max(found) for key, found in counts.read().by_key.items()} == feed.sent,
        SETTLED_S,
        lambda: f"all counts: {feed.sent}, not {counts.by_key}",
    )
    for key, found in counts.by_key.items():
        assert found == list(range(1, feed.sent[key] + 1)), key
