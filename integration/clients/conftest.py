"""Both brokers: one server of each, shared by all tests; each test has its own topics and groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from integration import apache_kafka
from integration.differential.playing import pairs
from integration.support.server import COMMAND, Server

KSHIM, APACHE_KAFKA = "kshim", "apache-kafka"
OPTIONS = (
    *("--set", "group.initial.rebalance.delay.ms=0"),
    *("--set", "group.min.session.timeout.ms=300"),
    *("--set", "group.consumer.min.session.timeout.ms=6000"),
    *("--set", "group.consumer.session.timeout.ms=6000"),
)
PATIENT = ("--set", "broker.session.timeout.ms=30000")
"""No test kills the broker, and a slow machine must not make it look dead."""
COMMANDS = {KSHIM: (COMMAND, OPTIONS), APACHE_KAFKA: (apache_kafka.COMMAND, (*OPTIONS, *PATIENT))}


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """Gives the server of a name, and starts it when it is first asked for."""
    started: dict[str, Server] = {}

    def named(name: str) -> Server:
        if name not in started:
            command, options = COMMANDS[name]
            server = Server(tmp_path_factory.mktemp(name) / "data", options, command=command)
            started[name] = server.start()
            asyncio.run(asyncio.wait_for(pairs.wait_loaded(server), pairs.READY_TIMEOUT_S))
        return started[name]

    yield named
    for name, server in started.items():
        assert server.running, server.report()
        if name == KSHIM:
            assert server.stop() == 0, server.report()
        else:
            server.kill()  # on a busy machine Apache Kafka takes half a minute to stop


@pytest.fixture(scope="session", params=COMMANDS)
def broker(request: pytest.FixtureRequest, start: Callable[[str], Server]) -> Server:
    if request.param == APACHE_KAFKA:
        request.getfixturevalue("class_path")
    return start(request.param)


@pytest.fixture
def is_kshim(request: pytest.FixtureRequest) -> bool:
    """True if the broker is kshim. For answers that are meant to differ: the test names the line of
    docs/differences.md."""
    return bool(request.node.callspec.params["broker"] == KSHIM)
