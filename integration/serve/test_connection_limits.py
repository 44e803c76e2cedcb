"""Limits of connections, changed at run time; Apache Kafka has the same."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator

import pytest

from integration.support.awaiting import wait_until
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER = 4
SOON_S = 0.5
"""As long as a connection that waits for a place is watched."""


class Clients:
    """Connections to one server: one that stays, by which configs are altered, and others."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._open: list[Wire] = []
        self.first = Wire(server.host, server.port, timeout_s=10)

    def connect(self, timeout_s: float = 10) -> Wire:
        wire = Wire(self._server.host, self._server.port, timeout_s=timeout_s)
        self._open.append(wire)
        return wire

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    def served(self) -> int:
        """The number of connections served, with the first, before one is closed; the others are closed
        then."""
        count = 1
        try:
            while count < 10:
                self.connect().ask(0, ApiVersionsRequest())
                count += 1
        except OSError:
            pass
        self.close()
        return count


@pytest.fixture
def clients(own_server: Server) -> Iterator[Clients]:
    found = Clients(own_server)
    yield found
    found.close()
    found.first.close()


def alter(clients: Clients, **configs: str) -> None:
    """Set configs of all brokers, by names with "_" for "."."""
    changes = tuple(
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=text)
        for name, text in configs.items()
    )
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=changes)
    response = clients.first.ask(1, IncrementalAlterConfigsRequest(resources=(resource,)))
    assert response.responses[0].error_code == 0, response


def test_connections_from_one_address(clients: Clients) -> None:
    alter(clients, max_connections_per_ip="3")
    wait_until(lambda: clients.served() == 3, 10, "three connections are served")
    alter(clients, max_connections_per_ip_overrides="127.0.0.1:5,10.0.0.7:0")
    wait_until(lambda: clients.served() == 5, 10, "five connections are served")


def test_connections_in_all(clients: Clients) -> None:
    alter(clients, max_connections="2")
    second = clients.connect()
    second.ask(0, ApiVersionsRequest())
    third = clients.connect(timeout_s=SOON_S)
    with pytest.raises(TimeoutError):
        third.ask(0, ApiVersionsRequest())
    second.close()
    third.settimeout(10)
    third.frame()


def test_as_many_connections_as_the_user_may_have_files(new_server: Callable[..., Server]) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)

    def allow_few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(64, most), most))

    server = new_server(preexec=allow_few).start()
    wires = [Wire(server.host, server.port, timeout_s=10) for _ in range(min(200, most - 100))]
    wires[-1].ask(0, ApiVersionsRequest())
    for wire in wires:
        wire.close()
