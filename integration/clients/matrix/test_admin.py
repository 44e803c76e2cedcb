"""The calls of an administrator."""

from __future__ import annotations

import pytest

from integration.clients.matrix.driver import ClientError, Driver
from integration.clients.matrix.records import send, values
from integration.support.awaiting import wait_until


def test_topics(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic, partitions=2, configs={"retention.ms": "100000"})
    wait_until(lambda: topic in driver.topics(), 10, "the topic")
    assert driver.ends(topic=topic) == [[0, 0], [0, 0]]
    with pytest.raises(ClientError):
        driver.create_topic(topic=topic)
    driver.grow_topic(topic=topic, partitions=3)
    wait_until(lambda: len(driver.ends(topic=topic)) == 3, 10, "the third partition")
    driver.delete_topic(topic=topic)
    wait_until(lambda: topic not in driver.topics(), 10, "the topic's deletion")


def test_configs(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic, configs={"retention.ms": "100000"})
    wait_until(lambda: topic in driver.topics(), 10, "the topic")
    assert driver.configs(topic=topic)["retention.ms"] == "100000"
    driver.alter_configs(topic=topic, configs={"retention.ms": "200000"})
    wait_until(lambda: driver.configs(topic=topic)["retention.ms"] == "200000", 10, "the new value")


def test_deleted_records(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    send(driver, topic, "a", "b", "c")
    driver.delete_records(topic=topic, partition=0, offset=2)
    assert driver.ends(topic=topic) == [[2, 3]]
    driver.open(name="c", topics=[topic])
    assert values(driver, 1) == ["c"]


def test_groups(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    send(driver, topic, "a")
    driver.open(name="c", topics=[topic], group=topic)
    assert values(driver, 1) == ["a"]
    driver.commit(name="c")
    wait_until(lambda: topic in driver.groups(), 10, "the group")
    stable = {"state": "Stable", "members": 1}
    wait_until(lambda: driver.group(name=topic) == stable, 10, "the group to be stable")
    driver.close(name="c")
    empty = {"state": "Empty", "members": 0}
    wait_until(lambda: driver.group(name=topic) == empty, 10, "the group to be empty")
    driver.delete_group(name=topic)
    wait_until(lambda: topic not in driver.groups(), 10, "the group's deletion")
