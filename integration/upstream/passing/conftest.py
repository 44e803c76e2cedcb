"""Apache Kafka with users and ACLs, and kshim in front of each of its listeners for logins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.apache_kafka.nodes import Nodes
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.clients.security.cells import PASSWORD, WRONG, Cell
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.toolchain import or_skip
from integration.upstream.identified import CAROL
from integration.upstream.passed_logins import (
    NODES,
    OURS,
    USERS,
    NewDriver,
    Passing,
    passing,
    upstream,
)

ANSWER_S = 60


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates") / "made"
    clients = [option for user in (*USERS, CAROL) for option in ("--client", user)]
    command = [sys.executable, "-m", "kshim", "certificates", str(directory), *clients]
    subprocess.run(command, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="package")
def nodes(class_path: str, tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[Nodes]:
    nodes = upstream(tmp_path_factory.mktemp("upstream"), certificates)
    yield nodes
    nodes.kill()


@pytest.fixture(scope="package")
def through(
    nodes: Nodes, tmp_path_factory: pytest.TempPathFactory, certificates: Path
) -> Iterator[Callable[[str], Passing]]:
    """through(listener): kshim in front of that listener of the nodes."""
    started: dict[str, Passing] = {}
    with ExitStack() as stack:

        def to(listener: str) -> Passing:
            if listener not in started:
                directory = tmp_path_factory.mktemp("kshim")
                started[listener] = stack.enter_context(passing(nodes, listener, directory, certificates))
            return started[listener]

        yield to
        for each in started.values():
            log = "\n".join(each.server.log)
            assert "Traceback" not in log
            assert PASSWORD not in log
            assert WRONG not in log


@pytest.fixture
def kshim(through: Callable[[str], Passing]) -> Passing:
    return through("LOGIN")


@pytest.fixture
def orders(nodes: Nodes, topic: str) -> str:
    """A topic with a partition at each node, which USER may use."""
    admin = Admin(nodes.servers[1].bootstrap)
    admin.create_topic(f"t-{topic}", NODES)
    wait_until(lambda: len(set(admin.partitions(f"t-{topic}").values())) == NODES, ANSWER_S, "leaders")
    admin.close()
    return f"t-{topic}"


@pytest.fixture
def new_driver() -> Iterator[NewDriver]:
    """new_driver(client, kshim, listener, mechanism, user): a driver at that listener of kshim."""
    drivers: list[Driver] = []

    def new(client: str, kshim: Passing, listener: str, mechanism: str, **told: str) -> Driver:
        with or_skip(client):
            command = CLIENTS[client].command()
        cell = Cell(listener, OURS[listener], mechanism)
        environment = cell.environment(kshim.certificates, **told)
        drivers.append(Driver(command, kshim.address(listener), environment))
        return drivers[-1]

    yield new
    for driver in drivers:
        driver.stop()
