"""Checks what a driver's user may do with a topic: write it and read it, or only see it. The topic has a
partition at each node.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.clients.matrix.driver import ClientError, Driver
from integration.support.awaiting import wait_until
from integration.upstream.passed_logins import NODES

ANSWER_S = 60
RECORDS = [{"key": "k", "value": f"v{number}", "partition": number} for number in range(NODES)]


def writes_and_reads(driver: Driver, topic: str, report: Callable[[], str]) -> None:
    """The user may write to the leaders at all nodes, and read in a group."""
    driver.produce(topic=topic, records=RECORDS)
    driver.open(name="c", topics=[topic], group=f"g-{topic}", assignors=["range"])
    found: list[dict[str, str]] = []

    def are_read() -> bool:
        found.extend(driver.take(name="c", count=NODES, timeout_ms=1000))
        return len(found) == NODES

    wait_until(are_read, ANSWER_S, report)
    assert {record["value"] for record in found} == {"v0", "v1"}
    driver.close(name="c")
    assert topic in driver.topics()


def only_sees(driver: Driver, topic: str) -> None:
    """The user may see the topic, but neither write to it nor be in the group."""
    assert topic in driver.topics()
    with pytest.raises(ClientError, match=r"(?i)topic.*authori[sz]"):
        driver.produce(topic=topic, records=RECORDS[:1])
    driver.open(name="c", topics=[topic], group=f"g-{topic}", assignors=["range"])
    with pytest.raises(ClientError, match=r"(?i)group.*authori[sz]"):
        wait_until(lambda: driver.take(name="c", count=1, timeout_ms=1000), ANSWER_S, "a refusal")
