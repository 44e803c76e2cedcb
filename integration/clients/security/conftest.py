"""The servers, one of each kind for all tests of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.clients.security.cells import Cell
from integration.clients.security.world import Secured, secured
from integration.support.toolchain import or_skip

ENVIRONMENT = "KSHIM_CLIENTS"
NewDriver = Callable[..., Driver]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "client" in metafunc.fixturenames:
        names = os.environ.get(ENVIRONMENT, "kafka-python,confluent-kafka").split(",")
        metafunc.parametrize("client", names)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates") / "made"
    command = [sys.executable, "-m", "kshim", "certificates", str(directory), "--client", "alice"]
    subprocess.run(command, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="session")
def server_named(
    certificates: Path, class_path: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Secured]]:
    started: dict[str, Secured] = {}
    with ExitStack() as stack:

        def named(broker: str) -> Secured:
            if broker not in started:
                directory = tmp_path_factory.mktemp("server") / "data"
                started[broker] = stack.enter_context(secured(broker, directory, certificates))
            return started[broker]

        yield named


@pytest.fixture
def new_driver(server_named: Callable[[str], Secured]) -> Iterator[NewDriver]:
    """new_driver(client, broker, cell, **options): a driver at the listener of that cell."""
    drivers: list[Driver] = []

    def new(client: str, broker: str, cell: Cell, **told: str) -> Driver:
        with or_skip(client):
            command = CLIENTS[client].command()
        server = server_named(broker)
        environment = cell.environment(server.certificates, **told)
        drivers.append(Driver(command, server.addresses[cell.listener], environment))
        return drivers[-1]

    yield new
    for driver in drivers:
        driver.stop()
