"""Duration of rebalances of two real consumers: one joins, one leaves, one crashes.

The consumers are those of the clients' tests (`integration/clients/matrix`), each in a process of its own.
They are asked for their assignments all the time, and answer between two polls, which take 50 ms at most.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from benchmarks.comparing import percentile
from benchmarks.generator import Load
from benchmarks.processor import Measured, Window
from benchmarks.raw import Connection
from benchmarks.servers import Target
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver

PARTITIONS = 4
SESSION_TIMEOUT_MS = 6_000
"""The least that Apache Kafka allows by default. The drivers send four heartbeats in it."""
HEARTBEAT_S = SESSION_TIMEOUT_MS / 4 / 1000
TIMEOUT_S = 60
NAME = "c"


class Consumer:
    """A driver with one consumer in it."""

    def __init__(self, client: str, bootstrap: str) -> None:
        self.driver = Driver(CLIENTS[client].command(), bootstrap, {})
        self.driver.hello()

    def open(self, topic: str, group_id: str, assignor: str) -> None:
        self.driver.open(
            name=NAME,
            topics=[topic],
            group=group_id,
            assignors=[assignor],
            session_timeout_ms=SESSION_TIMEOUT_MS,
        )

    def count(self) -> int:
        """The number of the consumer's partitions."""
        return len(self.driver.assignment(name=NAME))

    def close(self) -> None:
        self.driver.close(name=NAME)


@contextmanager
def consumer(client: str, bootstrap: str) -> Iterator[Consumer]:
    made = Consumer(client, bootstrap)
    try:
        yield made
    finally:
        made.driver.stop()


def seconds_until(condition: Callable[[], bool], began: float) -> float:
    while not condition():
        if time.perf_counter() - began > TIMEOUT_S:
            raise TimeoutError(f"the group was not complete within {TIMEOUT_S} s")
    return time.perf_counter() - began


def rest() -> None:
    """Wait until all members have sent a heartbeat since the last rebalance, and for no certain time more."""
    time.sleep(random.uniform(1, 2) * HEARTBEAT_S)


class Pair:
    """A member of a group of its own, and a second one that comes and goes."""

    def __init__(self, first: Consumer, second: Consumer, topic: str, assignor: str) -> None:
        self._first, self._second = first, second
        self._subscription = (topic, f"benchmark-{uuid4()}", assignor)
        first.open(*self._subscription)
        seconds_until(self._first_has_all, time.perf_counter())

    def _first_has_all(self) -> bool:
        return self._first.count() == PARTITIONS

    def _both_have_half(self) -> bool:
        return self._first.count() == self._second.count() == PARTITIONS // 2

    def second_joins(self) -> float:
        """The seconds from its subscribing until both have their partitions."""
        rest()
        began = time.perf_counter()
        self._second.open(*self._subscription)
        return seconds_until(self._both_have_half, began)

    def second_leaves(self) -> float:
        """The seconds from its closing until the first one has all."""
        rest()
        began = time.perf_counter()
        self._second.close()
        return seconds_until(self._first_has_all, began)

    def second_crashes(self) -> float:
        """The seconds from the second consumer's crash until the first one has all partitions."""
        began = time.perf_counter()
        self._second.driver.crash()
        return seconds_until(self._first_has_all, began)


def rebalance(target: Target, load: Load, _: float) -> Measured:
    """`cycles` times a second member comes and goes; then it comes and crashes."""
    topic, client = Connection(target.bootstrap).new_topic(PARTITIONS), load["client"]
    with consumer(client, target.bootstrap) as first, consumer(client, target.bootstrap) as second:
        pair = Pair(first, second, topic, load["assignor"])
        joined_s, left_s = [], []
        with Window(target.pid) as window:
            for _number in range(load["cycles"]):
                joined_s.append(pair.second_joins())
                left_s.append(pair.second_leaves())
        pair.second_joins()
        crashed_s = pair.second_crashes()
        first.close()
    figures = {
        "join p50 s": percentile(joined_s, 50),
        "join p95 s": percentile(joined_s, 95),
        "leave p50 s": percentile(left_s, 50),
        "leave p95 s": percentile(left_s, 95),
        "crash s": crashed_s,
    }
    return window.measured(0, figures)
