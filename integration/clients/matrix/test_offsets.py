"""Offsets: committed, found again, and moved."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from integration.clients.matrix.driver import Driver
from integration.clients.matrix.records import SILENCE_MS, send, values
from integration.support.awaiting import wait_until


@pytest.fixture
def filled(driver: Driver, topic: str) -> str:
    """A topic with ten records in one partition."""
    driver.create_topic(topic=topic)
    send(driver, topic, *map(str, range(10)))
    return topic


@pytest.fixture
def reopen(driver: Driver, filled: str) -> Callable[[], None]:
    def again() -> None:
        driver.close(name="c")
        driver.open(name="c", topics=[filled], group=filled)

    driver.open(name="c", topics=[filled], group=filled)
    return again


def test_a_commit_of_what_was_taken(driver: Driver, filled: str, reopen: Callable[[], None]) -> None:
    assert len(values(driver, 10)) == 10
    driver.commit(name="c")
    reopen()
    assert values(driver, 1, timeout_ms=SILENCE_MS) == []
    send(driver, filled, "10")
    assert values(driver, 1) == ["10"]


def test_a_commit_of_named_offsets_with_metadata(
    driver: Driver, filled: str, reopen: Callable[[], None]
) -> None:
    assert len(values(driver, 10)) == 10
    driver.commit(name="c", offsets=[[filled, 0, 4, "noted"]])
    assert driver.committed(name="c", partitions=[[filled, 0]]) == [[4, "noted"]]
    reopen()
    assert values(driver, 6) == list("456789")


def test_a_commit_that_is_not_waited_for(driver: Driver, filled: str, reopen: Callable[[], None]) -> None:
    assert len(values(driver, 10)) == 10
    driver.commit(name="c", offsets=[[filled, 0, 7, ""]], wait=False)

    def committed() -> list[object]:
        found: list[list[object]] = driver.committed(name="c", partitions=[[filled, 0]])
        return found[0]

    # Some clients tell no empty text from none.
    wait_until(lambda: committed() in ([7, ""], [7, None]), 10, lambda: f"a commit, not {committed()}")
    reopen()
    assert values(driver, 3) == list("789")


def test_nothing_is_committed_at_first(driver: Driver, filled: str) -> None:
    driver.open(name="c", topics=[filled], group=filled)
    values(driver, 1)
    assert driver.committed(name="c", partitions=[[filled, 0]]) == [None]


def test_what_was_taken_is_committed_at_the_close(driver: Driver, filled: str) -> None:
    driver.open(name="c", topics=[filled], group=filled, auto_commit=True)
    assert len(values(driver, 10)) == 10
    driver.close(name="c")
    driver.open(name="c", topics=[filled], group=filled)
    assert values(driver, 1, timeout_ms=SILENCE_MS) == []
    assert driver.committed(name="c", partitions=[[filled, 0]])[0][0] == 10


def test_seek(driver: Driver, filled: str) -> None:
    driver.open(name="c", topics=[filled], group=filled)
    assert len(values(driver, 10)) == 10
    for offset, expected in ((8, ["8", "9"]), ("beginning", ["0"])):
        driver.seek(name="c", topic=filled, partition=0, offset=offset)
        assert values(driver, len(expected)) == expected


def test_seek_to_the_end(driver: Driver, filled: str) -> None:
    driver.open(name="c", topics=[filled], group=filled)
    assert len(values(driver, 10)) == 10
    driver.seek(name="c", topic=filled, partition=0, offset="end")
    send(driver, filled, "new")
    assert values(driver, 1) == ["new"]


def test_seek_to_a_time(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    start_ms = int(time.time() * 1000) - 60_000
    records = [{"value": str(number), "partition": 0, "timestamp": start_ms + number} for number in range(10)]
    driver.produce(topic=topic, records=records)
    driver.open(name="c", topics=[topic], group=topic)
    assert len(values(driver, 10)) == 10
    driver.seek_to_time(name="c", topic=topic, partition=0, timestamp_ms=start_ms + 7)
    assert values(driver, 3) == ["7", "8", "9"]


def test_pause_and_resume(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic, partitions=2)
    driver.open(name="c", topics=[topic], group=topic)
    send(driver, topic, "first")
    assert values(driver, 1) == ["first"]
    driver.pause(name="c", partitions=[[topic, 0]])
    send(driver, topic, "other", partition=1)
    assert values(driver, 1) == ["other"]  # not every client holds back what a fetch under way still brings
    send(driver, topic, "paused")
    assert values(driver, 1, timeout_ms=SILENCE_MS) == []
    driver.resume(name="c", partitions=[[topic, 0]])
    assert values(driver, 1) == ["paused"]


def test_an_offset_out_of_range_is_reset(driver: Driver, filled: str) -> None:
    driver.open(name="c", topics=[filled], group=filled)
    assert len(values(driver, 10)) == 10
    driver.seek(name="c", topic=filled, partition=0, offset=1000)
    assert values(driver, 10) == list("0123456789")
