"""One server, and a driver of each client."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.support.toolchain import or_skip
from kshim.testing import Kshim, serving

PROPERTIES = {
    "group.min.session.timeout.ms": "300",
    "group.heartbeat.park.enable": "false",  # so that each heartbeat is there to be struck
}


@pytest.fixture(scope="session")
def kshim() -> Iterator[Kshim]:
    with serving(properties=PROPERTIES) as kshim:
        yield kshim


@pytest.fixture(scope="session")
def drivers(kshim: Kshim) -> Iterator[Callable[[str], Driver]]:
    """Gives the driver of a client; `again` starts another, in place of one that hangs."""
    started: dict[str, Driver] = {}

    def of(name: str, again: bool = False) -> Driver:
        if again:
            started.pop(name).crash()
        if name not in started:
            with or_skip(name):
                command = CLIENTS[name].command()
            started[name] = Driver(command, kshim.bootstrap, {})
        return started[name]

    yield of
    for each in started.values():
        each.stop()
