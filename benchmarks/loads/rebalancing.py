"""How long a group of two real consumers is in a rebalance: one joins, one leaves, one crashes.

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
        """How many partitions it has."""
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


def rebalance(target: Target, load: Load, _: float) -> Measured:
    """`cycles` times a second member comes and goes; the last one crashes."""
    topic, group_id = Connection(target.bootstrap).new_topic(PARTITIONS), f"benchmark-{uuid4()}"
    joined_s, left_s = [], []
    with (
        consumer(load["client"], target.bootstrap) as first,
        consumer(load["client"], target.bootstrap) as second,
    ):

        def has_all() -> bool:
            return first.count() == PARTITIONS

        def is_shared() -> bool:
            return first.count() == second.count() == PARTITIONS // 2

        def second_joins() -> float:
            time.sleep(random.uniform(0, HEARTBEAT_S))  # not in step with the first one's heartbeats
            began = time.perf_counter()
            second.open(topic, group_id, load["assignor"])
            return seconds_until(is_shared, began)

        first.open(topic, group_id, load["assignor"])
        seconds_until(has_all, time.perf_counter())
        with Window(target.pid) as window:
            for _number in range(load["cycles"]):
                joined_s.append(second_joins())
                time.sleep(random.uniform(0, HEARTBEAT_S))
                began = time.perf_counter()
                second.close()
                left_s.append(seconds_until(has_all, began))
        second_joins()
        began = time.perf_counter()
        second.driver.crash()
        crashed_s = seconds_until(has_all, began)
        first.close()
    figures = {
        "join p50 s": percentile(joined_s, 50),
        "join p95 s": percentile(joined_s, 95),
        "leave p50 s": percentile(left_s, 50),
        "leave p95 s": percentile(left_s, 95),
        "crash s": crashed_s,
    }
    return window.measured(0, figures)
