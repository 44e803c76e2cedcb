"""Sending to a broker that comes back, and taking from it."""

from __future__ import annotations

from integration.clients.matrix.driver import ClientError, Driver
from integration.clients.matrix.records import SILENCE_MS, values
from integration.support.awaiting import wait_until

BACK_S = 60


def send_when_back(driver: Driver, topic: str, value: str) -> None:
    """Send a record as soon as the client finds the broker again."""

    def is_sent() -> bool:
        try:
            driver.produce(topic=topic, records=[{"value": value, "partition": 0}])
        except ClientError:
            return False
        return True

    wait_until(is_sent, BACK_S, "the broker is back")


def next_when_back(driver: Driver) -> list[str]:
    """The next record; meanwhile a client may report that its broker is away."""

    def taken() -> list[str]:
        try:
            return values(driver, 1, timeout_ms=SILENCE_MS)
        except ClientError:
            return []

    return wait_until(taken, BACK_S, "a record")
