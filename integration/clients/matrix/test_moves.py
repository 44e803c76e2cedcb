"""Leaders and coordinators move between three brokers: no record is lost, and no group rebalances.

Only kshim is steered so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.clients.conftest import KSHIM, OPTIONS
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import ClientError, Driver
from integration.clients.matrix.members import PARTITIONS, SETTLED_S, join, send_to_each, wait_for
from integration.clients.matrix.records import SILENCE_MS, values
from integration.support.awaiting import wait_until
from integration.support.server import Server

BROKERS = 3


@pytest.fixture(params=[KSHIM])
def broker(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", (*OPTIONS, "--brokers", str(BROKERS))).start()
    yield server
    server.stop()


@pytest.fixture
def consumed(driver: Driver, client: str, topic: str, broker: Server) -> Iterator[str]:
    """A topic that is consumed while a test moves something; its group does not rebalance."""
    driver.create_topic(topic=topic, partitions=PARTITIONS)
    join(driver, topic)
    wait_for([PARTITIONS], driver)
    take_all(driver, send_to_each(driver, topic, "first"))
    before = generations(broker, topic)
    yield topic
    if not CLIENTS[client].joins_again:
        assert generations(broker, topic) == before


def generations(broker: Server, group: str) -> list[str]:
    return [line for line in broker.log if f"group {group}: generation" in line]


def elsewhere(node_id: int) -> int:
    return node_id % BROKERS + 1


def take_all(driver: Driver, sent: list[str]) -> None:
    """Take until all of `sent` came. A member that joins again takes what was not committed once more."""
    missing = set(sent)

    def took_all() -> bool:
        missing.difference_update(values(driver, 1, timeout_ms=SILENCE_MS))
        return not missing

    wait_until(took_all, SETTLED_S, lambda: f"{sorted(missing)}")


def commit_all(driver: Driver, topic: str, offset: int) -> None:
    """Commit until `offset` is committed: a client may first look for the coordinator, or take records
    again."""

    def is_committed() -> bool:
        try:
            driver.commit(name="c")
            found = driver.committed(name="c", partitions=[[topic, 0]])
        except ClientError:
            return False
        return bool(found and found[0] and found[0][0] == offset)

    wait_until(is_committed, SETTLED_S, f"a commit of {offset}")


def test_leaders_move(driver: Driver, consumed: str, broker: Server) -> None:
    for described in json.loads(broker.steer("describe", "--json"))["partitions"]:
        if described["topic"] == consumed:
            to = elsewhere(described["leader"])
            broker.steer("move-leader", consumed, described["partition"], "--to", to)
    take_all(driver, send_to_each(driver, consumed, "moved"))


def test_the_coordinator_moves(driver: Driver, consumed: str, broker: Server) -> None:
    for moves, node_id in enumerate((1, 2, 3, 1), start=1):
        broker.steer("move-coordinator", consumed, "--to", node_id)
        take_all(driver, send_to_each(driver, consumed, f"at{node_id}-"))
        commit_all(driver, consumed, 1 + moves)
