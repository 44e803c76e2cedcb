"""Transactions: what is committed is seen, what is aborted is not."""

from __future__ import annotations

from typing import Any

from integration.clients.matrix.driver import Driver
from integration.clients.matrix.records import SILENCE_MS, values


def records(topic: str, *values: str) -> list[list[Any]]:
    return [[topic, {"value": value, "partition": 0}] for value in values]


def test_committed_and_aborted(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    driver.transact(id=topic, records=records(topic, "a", "b"), end="commit")
    driver.transact(id=topic, records=records(topic, "c"), end="abort")
    driver.transact(id=topic, records=records(topic, "d"), end="commit")
    driver.open(name="committed", topics=[topic], isolation="read_committed")
    assert values(driver, 3, name="committed") == ["a", "b", "d"]
    driver.open(name="all", topics=[topic], isolation="read_uncommitted")
    assert values(driver, 4, name="all") == ["a", "b", "c", "d"]
    assert values(driver, 1, name="committed", timeout_ms=SILENCE_MS) == []


def test_offsets_in_a_transaction(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    driver.produce(topic=topic, records=[{"value": str(number), "partition": 0} for number in range(5)])
    for offset, end in ((2, "commit"), (4, "abort")):
        offsets = [[topic, 0, offset, ""]]
        driver.transact(id=topic, records=records(topic, "x"), end=end, group=topic, offsets=offsets)
    driver.open(name="c", topics=[topic], group=topic, isolation="read_committed")
    assert values(driver, 4) == ["2", "3", "4", "x"]
