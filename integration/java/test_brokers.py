"""Brokers that move, under Apache's own clients: the stories of kafka-python's test_brokers.py again.

Two consumers of a group and a producer run through all of it. `pytest -s` shows for how long a partition had
no records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from integration.java.tool import Tool
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server

BROKERS = (1, 2, 3)
PARTITIONS = 6
GROUP = "readers"
RECORDS_PER_S = 300
LONGEST_PAUSE_S = 5
CONFIG = """
metadata.max.age.ms=1000
reconnect.backoff.ms=20
# A producer's default, but not VerifiableProducer's.
retries=2147483647
"""


class Story:
    """A producer that never stops, and a group that reads its records."""

    def __init__(self, server: Server, topic: str, run: Callable[..., Tool], config: Path) -> None:
        self.server, self.topic = server, topic
        self.partitions = PARTITIONS
        self.admin = Admin(server.bootstrap)
        self.admin.create_topic(topic, PARTITIONS, replication_factor=len(BROKERS))
        config.write_text(CONFIG)
        connect = ("--bootstrap-server", server.bootstrap, "--topic", topic)
        consume = ("--group-id", GROUP, "--session-timeout", "6000", "--consumer.config", str(config))
        self.consumers = [run("VerifiableConsumer", *connect, *consume) for _ in range(2)]
        produce = (
            "--acks",
            "-1",
            "--repeating-keys",
            "100",
            "--throughput",
            str(RECORDS_PER_S),
            "--producer.config",
            str(config),
        )
        self.producer = run("VerifiableProducer", *connect, *produce)

    def acknowledged(self) -> set[tuple[int, int]]:
        facts = self.producer.facts("producer_send_success")
        return {(fact["partition"], fact["offset"]) for fact in facts}

    def arrivals(self) -> list[tuple[float, int, range]]:
        """(when, partition, offsets) of all consumed records."""
        return [
            (at_s, read["partition"], range(read["minOffset"], read["maxOffset"] + 1))
            for consumer in self.consumers
            for at_s, fact in list(consumer.said)
            if fact["name"] == "records_consumed"
            for read in fact["partitions"]
        ]

    def consumed(self) -> set[tuple[int, int]]:
        return {(partition, offset) for _, partition, offsets in self.arrivals() for offset in offsets}

    def rebalances(self) -> int:
        return sum(f"group {GROUP}: generation" in line for line in self.server.log)

    def shared(self) -> bool:
        """True if the consumers, by their last lines, share all partitions equally."""
        last = [consumer.facts("partitions_assigned")[-1:] for consumer in self.consumers]
        owned = [len(fact["partitions"]) for facts in last for fact in facts]
        return owned == [self.partitions // len(self.consumers)] * len(self.consumers)

    def wait_more(self, count: int = 150) -> None:
        """Wait until `count` more records were consumed, and at least one of each partition."""
        since_s, total = time.monotonic(), len(self.consumed()) + count

        def came() -> bool:
            partitions = {partition for at_s, partition, _ in self.arrivals() if at_s > since_s}
            return len(self.consumed()) >= total and len(partitions) == self.partitions

        wait_until(came, 30, self.report)

    def report(self) -> str:
        tools = (self.producer, *self.consumers)
        return "\n".join([*(tool.report() for tool in tools), self.server.report()])

    @contextmanager
    def chapter(self, what: str, *, rebalances: int = 0) -> Iterator[None]:
        """A block that causes exactly this many rebalances; records arrive before and after it."""
        self.wait_more()
        before, since_s = self.rebalances(), time.monotonic()
        yield
        self.wait_more()
        assert self.rebalances() == before + rebalances, self.report()
        pause_s = self.longest_pause_s(since_s)
        print(f"\n{what}: {rebalances} rebalances, {pause_s * 1000:.0f} ms without records at most")
        assert pause_s < LONGEST_PAUSE_S

    def longest_pause_s(self, since_s: float) -> float:
        arrivals = self.arrivals()
        pauses = []
        for index in range(self.partitions):
            times = sorted(at_s for at_s, partition, _ in arrivals if partition == index and at_s > since_s)
            pauses += [later - earlier for earlier, later in pairwise([since_s, *times])]
        return max(pauses)

    def finish(self) -> None:
        """No acknowledged record is lost, and nothing has failed."""
        self.producer.stop()
        assert self.producer.facts("producer_send_error") == []
        acknowledged = self.acknowledged()
        assert len(acknowledged) > 1000
        wait_until(lambda: acknowledged <= self.consumed(), 20, self.report)


@pytest.fixture
def story(
    new_server: Callable[..., Server], run_tool: Callable[..., Tool], topic: str, tmp_path: Path
) -> Story:
    server = new_server("--brokers", str(len(BROKERS))).start()
    story = Story(server, topic, run_tool, tmp_path / "client.properties")
    wait_until(story.shared, 60, story.report)
    return story


def test_nobody_rebalances_because_a_broker_moves(story: Story) -> None:
    steer, topic = story.server.steer, story.topic
    with story.chapter(f"{PARTITIONS} leaders moved"):
        for index, leader in story.admin.partitions(topic).items():
            steer("move-leader", topic, index, "--to", leader % len(BROKERS) + 1)
    with story.chapter("the coordinator moved to each broker"):
        for node_id in BROKERS:
            steer("move-coordinator", GROUP, "--to", node_id)
            story.wait_more()
    with story.chapter(f"{PARTITIONS} partitions added", rebalances=1):
        story.admin.add_partitions(topic, 2 * PARTITIONS)
        story.partitions = 2 * PARTITIONS
        wait_until(story.shared, 20, story.report)
    with story.chapter(f"{len(BROKERS)} brokers stopped and started"):
        for node_id in BROKERS:
            steer("stop-broker", node_id)
            story.wait_more()
            steer("start-broker", node_id)
            story.wait_more()
    story.finish()
