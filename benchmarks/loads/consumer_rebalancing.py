"""Duration of rebalances of real consumers with group.protocol=consumer.

Some groups, each with a topic of its own, are measured at the same time: on Apache Kafka most of a rebalance
is waiting for heartbeats. A process has a member of each group. The drivers note the time of each call of a
rebalance listener; a rebalance lasts until the last call after which all partitions have their owners.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from benchmarks.comparing import percentile
from benchmarks.generator import Load
from benchmarks.processor import Measured, Window
from benchmarks.raw import Connection
from benchmarks.servers import Target
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.support.awaiting import wait_until
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest

PARTITIONS = 4
GROWTH = 2
HEARTBEAT_S = 5.0
"""The interval of Apache Kafka's members."""
SEARCH_S = 10.0
"""The least time between two of Apache Kafka's searches for an expression."""
APART_S = 0.2
"""The mean time between what happens in two groups."""
TIMEOUT_S = 90


class Process:
    """A driver with members of several groups, and what their listeners have been called with."""

    def __init__(self, client: str, bootstrap: str) -> None:
        found = CLIENTS[client]
        self.driver = Driver(found.command(), bootstrap, {}, found.protocol)
        self.driver.hello()
        self.owned: dict[str, set[tuple[str, int]]] = defaultdict(set)
        """The partitions of each member."""
        self.changed_s: dict[str, float] = defaultdict(float)
        """When they changed last, in s since 1970."""

    def open(self, name: str, **subscription: object) -> None:
        self.owned[name].clear()
        self.driver.open(name=name, group=name, assignors=["uniform"], **subscription)

    def close(self, name: str) -> None:
        self.driver.close(name=name)
        self.owned[name].clear()

    def look(self, name: str) -> None:
        """Note a member's events since the last call."""
        for kind, partitions, at_ms in self.driver.timed_events(name=name):
            if partitions:
                found = {(topic, number) for topic, number in partitions}
                change = self.owned[name].update if kind == "assigned" else self.owned[name].difference_update
                change(found)
                self.changed_s[name] = at_ms / 1000


@contextmanager
def process(client: str, bootstrap: str) -> Iterator[Process]:
    made = Process(client, bootstrap)
    try:
        yield made
    finally:
        made.driver.stop()


def rest() -> None:
    """Wait until all members have sent a heartbeat since the last rebalance, and for no certain time more."""
    time.sleep(random.uniform(1, 2) * HEARTBEAT_S)


class Groups:
    """Groups of the same client: some with a topic each, and as many that subscribe to an expression."""

    def __init__(self, client: str, bootstrap: str, count: int, first: Process) -> None:
        self._client, self._bootstrap, self._first = client, bootstrap, first
        run = uuid4()
        self._partitions = {f"benchmark-{run}-{number}": PARTITIONS for number in range(count)}
        """The topic of each group, by their common name."""
        self._searching = {f"search-{run}-{number}": 0 for number in range(count)}
        """The number of topics that each group's expression matches."""
        for name in self._partitions:
            first.driver.create_topic(topic=name, partitions=PARTITIONS)
            first.open(name, topics=[name])
        for name in self._searching:
            first.open(name, pattern=f"^{name}-.*")
        self._wait_for(self._partitions, self._first_has_all)

    def warm_up(self, second: Process) -> None:
        """Have a second member in another group: at first a JVM has much to load."""
        topic = next(iter(self._partitions))
        second.open("warm-up", topics=[topic])

        def has_all() -> bool:
            second.look("warm-up")
            return len(second.owned["warm-up"]) == self._partitions[topic]

        wait_until(has_all, TIMEOUT_S, "the first assignment")
        second.close("warm-up")

    def join(self, second: Process) -> list[float]:
        """The seconds from a second member's subscribing until both have their partitions."""

        def both_have_half(name: str) -> bool:
            second.look(name)
            self._first.look(name)
            half = self._partitions[name] // 2
            return len(self._first.owned[name]) == len(second.owned[name]) == half

        began = self._one_by_one(self._partitions, lambda name: second.open(name, topics=[name]))
        self._wait_for(self._partitions, both_have_half)
        return [
            max(self._first.changed_s[name], second.changed_s[name]) - began_s
            for name, began_s in began.items()
        ]

    def leave(self, second: Process) -> list[float]:
        """The seconds from the second member's closing until the first one has all."""
        began = self._one_by_one(self._partitions, second.close)
        return self._until_first_has_all(began)

    def crash(self, second: Process) -> list[float]:
        """The seconds from a kill of the second members until the first ones have all."""
        began_s = time.time()
        second.driver.crash()
        return self._until_first_has_all(dict.fromkeys(self._partitions, began_s))

    def grow(self) -> list[float]:
        """The seconds from asking for partitions until the member has them."""

        def grow(name: str) -> None:
            self._partitions[name] += GROWTH
            self._first.driver.grow_topic(topic=name, partitions=self._partitions[name])

        return self._until_first_has_all(self._one_by_one(self._partitions, grow))

    def search(self) -> list[float]:
        """The seconds from creating a topic until the member whose expression matches it has it.

        All topics are created by one request: Apache Kafka searches once in ten seconds.
        """
        time.sleep(SEARCH_S)
        self._searching = {name: topics + 1 for name, topics in self._searching.items()}
        created = tuple(
            CreatableTopic(name=f"{name}-{topics}", num_partitions=1, replication_factor=1)
            for name, topics in self._searching.items()
        )
        request = CreateTopicsRequest(topics=created, timeout_ms=10_000)

        def has_all(name: str) -> bool:
            self._first.look(name)
            return len(self._first.owned[name]) == self._searching[name]

        began_s = time.time()
        Connection(self._bootstrap).ask(5, request)
        self._wait_for(self._searching, has_all)
        return [self._first.changed_s[name] - began_s for name in self._searching]

    def close(self) -> None:
        for name in (*self._partitions, *self._searching):
            self._first.close(name)

    def _first_has_all(self, name: str) -> bool:
        self._first.look(name)
        return len(self._first.owned[name]) == self._partitions[name]

    def _until_first_has_all(self, began: dict[str, float]) -> list[float]:
        self._wait_for(began, self._first_has_all)
        return [self._first.changed_s[name] - began_s for name, began_s in began.items()]

    @staticmethod
    def _one_by_one(names: Iterable[str], do: Callable[[str], None]) -> dict[str, float]:
        """Do something to each group, and return when it was begun."""
        began = {}
        for name in names:
            time.sleep(random.uniform(0, 2 * APART_S))
            began[name] = time.time()
            do(name)
        return began

    @staticmethod
    def _wait_for(names: Iterable[str], is_complete: Callable[[str], bool]) -> None:
        for name in names:
            wait_until(lambda name=name: is_complete(name), TIMEOUT_S, f"group {name}")  # type: ignore[misc]


def rebalance(target: Target, load: Load, _: float) -> Measured:
    """`rounds` times something happens to each of the `groups`."""
    client, session_s = load["client"], load["session_ms"] / 1000
    took_s: dict[str, list[float]] = defaultdict(list)
    with process(client, target.bootstrap) as first, Window(target.pid) as window:
        groups = Groups(client, target.bootstrap, load["groups"], first)
        for _number in range(load["rounds"]):
            with process(client, target.bootstrap) as second:
                groups.warm_up(second)
                rest()
                took_s["join"] += groups.join(second)
                rest()
                took_s["leave"] += groups.leave(second)
                rest()
                took_s["topic grows"] += groups.grow()
                rest()
                took_s["expression"] += groups.search()
                groups.join(second)
                rest()
                took_s["killed, beyond its session"] += [each - session_s for each in groups.crash(second)]
        groups.close()
    figures = {
        f"{name} p{rank} s": percentile(took, rank) for name, took in took_s.items() for rank in (50, 99)
    }
    return window.measured(0, figures)
