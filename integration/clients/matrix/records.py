"""Records that a client sends, and the values of those that it takes."""

from __future__ import annotations

from typing import Any

from integration.clients.matrix.driver import Driver

TAKE_MS = 20_000
SILENCE_MS = 1_000


def values(driver: Driver, count: int, name: str = "c", timeout_ms: int = TAKE_MS) -> list[Any]:
    return [record["value"] for record in driver.take(name=name, count=count, timeout_ms=timeout_ms)]


def send(driver: Driver, topic: str, *values: str | None, partition: int = 0, **options: Any) -> None:
    records = [{"value": value, "partition": partition} for value in values]
    driver.produce(topic=topic, records=records, **options)
