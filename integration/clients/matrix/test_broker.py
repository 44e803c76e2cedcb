"""The broker is stopped, or killed, and comes back at the same address: clients go on by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.clients.conftest import COMMANDS, OPTIONS
from integration.clients.matrix.coming_back import next_when_back, send_when_back
from integration.clients.matrix.driver import Driver
from integration.clients.matrix.records import values
from integration.differential.playing import pairs
from integration.support.server import Server


@pytest.fixture(params=COMMANDS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A broker of this scenario's own."""
    command, _ = COMMANDS[request.param]
    server = Server(tmp_path / "data", OPTIONS, command=command).start()
    asyncio.run(asyncio.wait_for(pairs.wait_loaded(server), pairs.READY_TIMEOUT_S))
    yield server
    if server.running:
        server.kill()


@pytest.fixture(params=["stopped", "killed"])
def interrupt(request: pytest.FixtureRequest, broker: Server) -> Callable[[], None]:
    """Ends the broker and starts it again."""

    def again() -> None:
        if request.param == "killed":
            broker.kill()
        else:
            broker.stop()
        broker.restart()

    return again


def test_a_consumer_goes_on(driver: Driver, topic: str, interrupt: Callable[[], None]) -> None:
    driver.create_topic(topic=topic)
    driver.open(name="c", topics=[topic], group=topic)
    send_when_back(driver, topic, "before")
    assert values(driver, 1) == ["before"]
    driver.commit(name="c")
    interrupt()
    send_when_back(driver, topic, "after")
    assert next_when_back(driver) == ["after"]


def test_what_was_acknowledged_is_there(driver: Driver, topic: str, interrupt: Callable[[], None]) -> None:
    driver.create_topic(topic=topic)
    sent = [str(number) for number in range(500)]
    driver.produce(topic=topic, records=[{"value": value, "partition": 0} for value in sent])
    interrupt()
    send_when_back(driver, topic, "after")
    driver.open(name="c", topics=[topic])
    found = values(driver, 501)
    assert found[:500] == sent
    assert found[500] == "after"
