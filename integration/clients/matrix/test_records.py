"""Records: what was sent is what is received."""

from __future__ import annotations

import time

import pytest

from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.clients.matrix.records import SILENCE_MS, TAKE_MS, send, values
from integration.support.awaiting import wait_until


def test_keys_values_headers_and_timestamps(driver: Driver, client: str, topic: str) -> None:
    driver.create_topic(topic=topic, partitions=2)
    now_ms = int(time.time() * 1000)
    sent = [
        {"key": "k", "value": "v", "partition": 1, "headers": [["h", "1"], ["h", "2"]], "timestamp": now_ms},
        {"key": None, "value": None, "partition": 1, "headers": [], "timestamp": now_ms + 1},
        {"key": "", "value": "grüße", "partition": 1, "headers": [], "timestamp": now_ms - 60_000},
    ]
    assert driver.produce(topic=topic, records=sent) == [[1, 0], [1, 1], [1, 2]]
    driver.open(name="c", topics=[topic])
    expected = [{**record, "topic": topic, "offset": offset} for offset, record in enumerate(sent)]
    if CLIENTS[client].empty_is_null:
        expected[2]["key"] = None
    assert driver.take(name="c", count=3, timeout_ms=TAKE_MS) == expected


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compression(driver: Driver, topic: str, compression: str) -> None:
    driver.create_topic(topic=topic)
    sent = [f"{number} " + "x" * 500 for number in range(100)]
    send(driver, topic, *sent, compression=compression)
    driver.open(name="c", topics=[topic])
    assert values(driver, 100) == sent


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks(driver: Driver, topic: str, acks: int) -> None:
    driver.create_topic(topic=topic)
    send(driver, topic, "a", "b", acks=acks)
    driver.open(name="c", topics=[topic])
    assert values(driver, 2) == ["a", "b"]


def test_an_idempotent_producer(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    sent = [str(number) for number in range(200)]
    send(driver, topic, *sent, idempotent=True)
    driver.open(name="c", topics=[topic])
    assert values(driver, 200) == sent
    assert driver.ends(topic=topic) == [[0, 200]]


def test_large_records(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    sent = [letter * 900_000 for letter in "abc"]
    send(driver, topic, *sent)
    driver.open(name="c", topics=[topic])
    assert values(driver, 3) == sent


def test_a_thousand_partitions(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic, partitions=1000)
    records = [{"value": str(number), "partition": number} for number in range(1000)]
    driver.produce(topic=topic, records=records)
    driver.open(name="c", topics=[topic])
    assert sorted(values(driver, 1000), key=int) == [str(number) for number in range(1000)]
    driver.close(name="c")
    driver.delete_topic(topic=topic)  # Apache Kafka stops too slowly with it.


def test_partitions_without_a_group(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic, partitions=3)
    for number in range(3):
        send(driver, topic, str(number), partition=number)
    driver.open(name="c", partitions=[[topic, 0], [topic, 2]])
    assert sorted(values(driver, 2)) == ["0", "2"]
    assert values(driver, 1, timeout_ms=SILENCE_MS) == []


def test_new_records_arrive(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    driver.open(name="c", topics=[topic])
    for number in range(5):
        send(driver, topic, str(number))
        assert values(driver, 1) == [str(number)]


def test_from_the_end(driver: Driver, topic: str) -> None:
    """Not every client reports that it has found the end; it may leave out records that are sent before."""
    driver.create_topic(topic=topic)
    send(driver, topic, "before")
    driver.open(name="c", partitions=[[topic, 0]], reset="latest")
    found: list[str] = []

    def arrives() -> bool:
        send(driver, topic, "after")
        found.extend(values(driver, 1, timeout_ms=SILENCE_MS))
        return bool(found)

    wait_until(arrives, 20, "a record")
    assert found == ["after"]


def test_the_position_at_the_end(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic)
    send(driver, topic, "before")
    driver.open(name="c", partitions=[[topic, 0]], reset="latest")
    assert driver.position(name="c", topic=topic, partition=0) == 1
    send(driver, topic, "after")
    assert values(driver, 1) == ["after"]
