"""Drivers of the clients under test, and the broker: kshim, then Apache Kafka."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest

from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import CLASSIC, CONSUMER, Cannot, Driver
from integration.clients.matrix.results import SKIPPED, Result, note, today
from integration.support.server import Server
from integration.support.toolchain import or_skip

ENVIRONMENT = "KSHIM_CLIENTS"
"""The names of the clients under test, separated by commas."""
RESULTS = "KSHIM_RESULTS"
"""The file that gets the results."""
_versions: dict[str, str] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = os.environ.get(ENVIRONMENT, "kafka-python").split(",")
    marked = metafunc.definition.get_closest_marker("protocol")
    protocols = set(marked.args if marked else (CLASSIC, CONSUMER))
    if "other" in metafunc.fixturenames:
        pairs = [
            pair
            for pair in combinations_with_replacement(names, 2)
            if not marked or {CLIENTS[name].protocol for name in pair} == protocols
        ]
        metafunc.parametrize(("client", "other"), pairs, indirect=True, scope="session")
    elif "client" in metafunc.fixturenames:
        names = [name for name in names if CLIENTS[name].protocol in protocols]
        metafunc.parametrize("client", names, indirect=True, scope="session")


def _params(item: pytest.Item) -> dict[str, Any]:
    """The parameters of a scenario; empty for another test, and for a scenario of none of the clients."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return params if isinstance(params.get("client"), str) else {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A call that the client does not have skips the scenario."""
    try:
        yield
    except Cannot as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note the result, if there is a file for it."""
    report: Any = yield
    path = os.environ.get(RESULTS)
    if path and (params := _params(item)) and (report.when == "call" or report.outcome != "passed"):
        assert isinstance(item, pytest.Function)
        client = str(params.get("client"))
        others = [str(value) for name, value in params.items() if name not in ("broker", "client")]
        scenario = item.originalname.removeprefix("test_").replace("_", " ")
        why = report.longrepr[2].removeprefix("Skipped: ") if report.outcome == SKIPPED else ""
        result = Result(
            client=client,
            version=_versions.get(client, ""),
            broker=str(params["broker"]),
            scenario=f"{scenario}: {', '.join(others)}" if others else scenario,
            outcome=report.outcome,
            why=why,
            date=today(),
        )
        note(Path(path), result)
    return report


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def other(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new_driver(request: pytest.FixtureRequest, broker: Server) -> Iterator[Callable[[str], Driver]]:
    """Starts a driver of the client of that name; a scenario that the client does not promise is skipped."""
    drivers: list[Driver] = []

    def new(name: str, bootstrap: str = "") -> Driver:
        with or_skip(name):
            command = CLIENTS[name].command()
        first, _, _ = broker.bootstrap.partition(",")
        drivers.append(Driver(command, bootstrap or first, {}, CLIENTS[name].protocol))
        if name not in _versions:
            _versions[name] = drivers[-1].hello()[1]
        if reason := CLIENTS[name].lacks.get(request.node.originalname):
            pytest.skip(f"{name}: {reason}")
        return drivers[-1]

    yield new
    for each in drivers:
        each.stop()


@pytest.fixture
def driver(new_driver: Callable[[str], Driver], client: str) -> Driver:
    return new_driver(client)


@pytest.fixture
def second(new_driver: Callable[[str], Driver], client: str) -> Driver:
    """Another process of the same client."""
    return new_driver(client)
