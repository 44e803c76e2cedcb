"""One Apache Kafka for the tests of a module, and kshim in front of it for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import apache_kafka
from integration.support.server import Server


@pytest.fixture(scope="module")
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, class_path: str
) -> Iterator[Server]:
    """Apache Kafka with the module's UPSTREAM_OPTIONS, if it has some."""
    options = getattr(request.module, "UPSTREAM_OPTIONS", ())
    data_dir = tmp_path_factory.mktemp("upstream") / "data"
    server = Server(data_dir, options, command=apache_kafka.COMMAND).start()
    yield server
    server.kill()


@pytest.fixture
def kshim(kafka: Server, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "kshim", ["--upstream", kafka.bootstrap]).start()
    yield server
    if server.running:
        server.kill()
