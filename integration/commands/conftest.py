"""Runs of `kshim` from another directory, which find their server by its address alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import apache_kafka
from integration.commands.running import Kshim
from integration.support.server import Server

KSHIM = "kshim"
KAFKA = "Apache Kafka"


@pytest.fixture(scope="session")
def kshim_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with its data in memory, so that nothing but its address leads to it."""
    directory = tmp_path_factory.mktemp("kshim")
    options = ["--control", str(directory / "control.sock"), "--http", "127.0.0.1:0"]
    server = Server(Path(":memory:"), options)
    yield server.start()
    assert server.stop() == 0, server.report()


@pytest.fixture(scope="session")
def kafka_server(class_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("kafka") / "data", command=apache_kafka.COMMAND)
    yield server.start()
    server.kill()


@pytest.fixture(params=[KSHIM, KAFKA])
def either(request: pytest.FixtureRequest) -> Server:
    """kshim, and Apache Kafka."""
    name = "kshim_server" if request.param == KSHIM else "kafka_server"
    server: Server = request.getfixturevalue(name)
    return server


@pytest.fixture
def kshim(either: Server, tmp_path: Path) -> Kshim:
    """Runs the command from an empty directory, with KSHIM_BOOTSTRAP in the environment."""
    return Kshim(either.bootstrap, tmp_path)
