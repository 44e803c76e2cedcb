"""Fixtures: one server shared by tests that leave it alone, and own servers for tests that harm them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.apache_kafka.jars import fetch_class_path
from integration.support.clients import Admin
from integration.support.server import FOREIGN_COMMAND, Server
from integration.support.toolchain import or_skip

# Assertions in modules that tests share explain themselves, as those in test modules do.
pytest.register_assert_rewrite("integration.clients.matrix", "integration.serve")

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not FOREIGN_COMMAND:
        return
    for item in items:
        if marker := item.get_closest_marker("kshim_only"):
            item.add_marker(pytest.mark.skip(reason=f"KSHIM_TEST_COMMAND is set: {marker.args[0]}"))


@pytest.fixture(scope="session")
def class_path() -> str:
    """Apache Kafka's class path."""
    with or_skip("Apache Kafka"):
        return fetch_class_path()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Shared by all tests: never stop it."""
    server = Server(tmp_path_factory.mktemp("shared") / "data").start()
    yield server
    assert server.running, server.report()
    assert server.stop() in (0, 143), server.report()  # 143: a JVM's own


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Makes servers for this test alone. Each has its own data directory unless the test passes one."""
    servers: list[Server] = []

    def new(*options: str, **settings: object) -> Server:
        data_dir = settings.pop("data_dir", tmp_path / f"data{len(servers)}")
        server = Server(data_dir, options, **settings)
        servers.append(server)
        return server

    yield new
    for server in servers:
        if server.running:
            server.kill()


@pytest.fixture
def own_server(new_server: Callable[..., Server]) -> Server:
    return new_server().start()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses; the topic does not exist yet."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")
    return f"{name}-{next(_numbers)}"


@pytest.fixture
def admin(server: Server) -> Iterator[Admin]:
    admin = Admin(server.bootstrap)
    yield admin
    admin.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the stderr of every server it used."""
    report = yield
    if report.failed:
        for name in ("server", "own_server", "broker"):
            if server := getattr(item, "funcargs", {}).get(name):
                report.sections.append((f"{name}'s stderr", server.report()))
    return report
