"""Members of a group with a topic of six partitions."""

from __future__ import annotations

from typing import Any

from integration.clients.matrix.driver import Driver
from integration.clients.matrix.records import send
from integration.support.awaiting import wait_until

SETTLED_S = 40
SESSION_TIMEOUT_MS = 6_000
PARTITIONS = 6


def join(driver: Driver, topic: str, **options: Any) -> None:
    driver.open(
        **{"name": "c", "topics": [topic], "group": topic, "session_timeout_ms": SESSION_TIMEOUT_MS} | options
    )


def sizes(*drivers: Driver) -> list[int]:
    return sorted(len(each.assignment(name="c")) for each in drivers)


def wait_for(expected: list[int], *drivers: Driver) -> None:
    """Wait until each member has its number of partitions, and no two have the same."""
    wait_until(lambda: sizes(*drivers) == expected, SETTLED_S, lambda: f"{expected}, not {sizes(*drivers)}")
    owned = [tuple(partition) for each in drivers for partition in each.assignment(name="c")]
    assert len(set(owned)) == sum(expected), owned


def send_to_each(driver: Driver, topic: str, letter: str) -> list[str]:
    """Send a record to each partition, and return the values."""
    sent = [f"{letter}{partition}" for partition in range(PARTITIONS)]
    for partition, value in enumerate(sent):
        send(driver, topic, value, partition=partition)
    return sent
