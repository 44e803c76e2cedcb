"""Unmodified clients go on while leaders and coordinators move, and while brokers stop and start.

A moved leader or coordinator causes no rebalance. Each story prints for how long a partition had no records:
`pytest -s` shows it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from integration.support.clients import ASSIGNORS, Admin, new_producer, read_all
from integration.support.server import Server
from integration.support.story import Story, telling

pytestmark = pytest.mark.kshim_only("`kshim cluster` steers kshim")

BROKERS = 3
PARTITIONS = 6
LONGEST_PAUSE_S = 5


@pytest.fixture
def brokers(new_server: Callable[..., Server]) -> Server:
    return new_server("--brokers", str(BROKERS)).start()


def rebalances(server: Server, story: Story) -> list[str]:
    """The server's log lines about the generations of the story's group."""
    return [line for line in server.log if f"group {story.group_id}: generation" in line]


def told(story: Story, what: str, since_s: float) -> None:
    pause_s = story.longest_pause_s(since_s)
    print(f"\n{what}: {pause_s * 1000:.0f} ms without records at most")
    assert pause_s < LONGEST_PAUSE_S


def leaders(server: Server, topic: str) -> dict[int, int]:
    """The leader of each partition, from the server: admin clients of 2.x fail if the broker they ask is
    stopped."""
    partitions = json.loads(server.steer("describe", "--json"))["partitions"]
    return {p["partition"]: p["leader"] for p in partitions if p["topic"] == topic}


def elsewhere(node_id: int) -> int:
    return node_id % BROKERS + 1


@pytest.mark.parametrize("assignor", list(ASSIGNORS)[:1])
def test_leaders_move(brokers: Server, topic: str, tmp_path: Path, assignor: str) -> None:
    with telling(brokers.bootstrap, topic, PARTITIONS, assignor, tmp_path) as story:
        members = story.join("first"), story.join("second")
        story.wait_shared(*members)
        story.feed.wait_more(50)
        before, since_s = rebalances(brokers, story), time.monotonic()
        for index, leader in leaders(brokers, topic).items():
            brokers.steer("move-leader", topic, index, "--to", elsewhere(leader))
            story.feed.wait_more(50)
        story.wait_consumed()
        told(story, f"{PARTITIONS} leaders moved, 0 rebalances", since_s)
        assert rebalances(brokers, story) == before
        story.wait_shared(*members)


def test_the_coordinator_moves(brokers: Server, topic: str, tmp_path: Path) -> None:
    with telling(brokers.bootstrap, topic, PARTITIONS, "range", tmp_path) as story:
        members = story.join("first"), story.join("second")
        story.wait_shared(*members)
        generations = story.generations()
        before, since_s = rebalances(brokers, story), time.monotonic()
        for node_id in (1, 2, 3, 1):
            brokers.steer("move-coordinator", story.group_id, "--to", node_id)
            story.feed.wait_more(50)
            story.watch.wait_look()
        story.wait_consumed()
        told(story, "the coordinator moved 3 times, 0 rebalances", since_s)
        assert rebalances(brokers, story) == before
        story.reconnect()  # kafka-python's admin client does not look up a coordinator again
        story.wait_shared(*members)
        assert story.generations() == generations


def test_partitions_are_added(brokers: Server, topic: str, tmp_path: Path) -> None:
    with telling(brokers.bootstrap, topic, PARTITIONS, "range", tmp_path, metadata_max_age_ms=1000) as story:
        members = story.join("first"), story.join("second")
        story.wait_shared(*members)
        story.feed.wait_more(50)
        before, since_s = rebalances(brokers, story), time.monotonic()
        story.add_partitions(2 * PARTITIONS)
        story.wait_shared(*members)
        story.wait_consumed()
        told(story, f"{PARTITIONS} partitions added, 1 rebalance", since_s)
        assert len(rebalances(brokers, story)) == len(before) + 1


def test_brokers_stop_and_start_under_load(brokers: Server, topic: str, tmp_path: Path) -> None:
    with telling(brokers.bootstrap, topic, PARTITIONS, "range", tmp_path, replication_factor=3) as story:
        members = story.join("first"), story.join("second")
        story.wait_shared(*members)
        before, since_s = rebalances(brokers, story), time.monotonic()
        for node_id in range(1, BROKERS + 1):
            brokers.steer("stop-broker", node_id)
            story.feed.wait_more(100)
            assert node_id not in leaders(brokers, topic).values()
            brokers.steer("start-broker", node_id)
            story.feed.wait_more(50)
        story.wait_consumed()
        told(story, f"{BROKERS} brokers stopped and started, 0 rebalances", since_s)
        assert rebalances(brokers, story) == before
        story.reconnect()
        story.wait_shared(*members)


def test_a_partition_without_its_only_broker_waits_for_it(
    brokers: Server, topic: str, tmp_path: Path
) -> None:
    with telling(brokers.bootstrap, topic, PARTITIONS, "range", tmp_path) as story:
        story.wait_shared(story.join("only"))
        brokers.steer("stop-broker", 2)
        without = leaders(brokers, topic)
        assert set(without.values()) == {-1, 1, 3}
        brokers.steer("start-broker", 2)
        assert leaders(brokers, topic) == {p: 2 if led == -1 else led for p, led in without.items()}
        story.feed.wait_more(100)


def test_leaders_and_epochs_outlive_the_process(brokers: Server, topic: str) -> None:
    admin = Admin(brokers.bootstrap)
    admin.create_topic(topic, PARTITIONS, replication_factor=2)
    admin.close()
    for index in range(PARTITIONS):
        brokers.steer("move-leader", topic, index, "--to", 3)
    with closing(new_producer(brokers.bootstrap)) as producer:
        for index in range(PARTITIONS):
            producer.send(topic, b"kept", partition=index).get(timeout=10)
    described = brokers.steer("describe")
    brokers.kill()
    brokers.restart()
    assert brokers.steer("describe") == described
    assert len(read_all(brokers.bootstrap, topic, PARTITIONS)) == PARTITIONS
