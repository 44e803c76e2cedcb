"""A client produces, consumes in a group and lists topics, over each protocol and mechanism."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from integration.clients.matrix.driver import ClientError, Driver
from integration.clients.security.cells import CELLS, PASSWORD, WRONG, Cell
from integration.clients.security.conftest import NewDriver
from integration.clients.security.results import Result, noted
from integration.clients.security.world import BROKERS, Secured
from integration.support.awaiting import wait_until

ANSWER_S = 60
LOGINS = [cell for cell in CELLS if cell.listener == "LOGIN" and cell.mechanism in ("PLAIN", "SCRAM-SHA-256")]


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.parametrize("at", BROKERS)
def test_a_client_works(client: str, at: str, cell: Cell, new_driver: NewDriver) -> None:
    with noted(Result(client, at, str(cell))) as result:
        driver = new_driver(client, at, cell)
        result.version = driver.hello()[1]
        topic = f"t-{uuid.uuid4()}"
        driver.create_topic(topic=topic)
        driver.produce(topic=topic, records=[{"key": "k", "value": "v", "partition": 0}])
        driver.open(name="c", topics=[topic], group=f"g-{topic}", assignors=assignors(client))
        records: list[dict[str, str]] = []

        def is_read() -> bool:
            records.extend(driver.take(name="c", count=1, timeout_ms=1000))
            return bool(records)

        wait_until(is_read, ANSWER_S, f"the record of {topic}")
        assert records[0]["value"] == "v"
        driver.close(name="c")
        assert topic in driver.topics()


@pytest.mark.parametrize("cell", LOGINS, ids=str)
@pytest.mark.parametrize("at", BROKERS)
def test_a_wrong_password(client: str, at: str, cell: Cell, new_driver: NewDriver) -> None:
    """The client's words are noted, and do not contain the password."""
    with noted(Result(client, at, str(cell), is_wrong=True)) as result:
        driver: Driver = new_driver(client, at, cell, password=WRONG)
        result.version = driver.hello()[1]
        with pytest.raises(ClientError) as failed:
            driver.topics()
        result.said = str(failed.value)
        assert WRONG not in result.said


def test_no_password_is_in_a_log(server_named: Callable[[str], Secured]) -> None:
    log = "\n".join(server_named("kshim").server.log)
    assert "authenticated as User:alice" in log
    assert not any(secret in log for secret in (PASSWORD, WRONG))
    assert "Traceback" not in log


def assignors(client: str) -> list[str]:
    return ["RoundRobinAssigner" if client == "kafkajs" else "range"]
