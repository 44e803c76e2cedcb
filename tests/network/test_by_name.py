"""Connections to a port that brokers share go on at the broker that the client names."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kshim.network.by_name import moved
from kshim.network.connection import Connection
from kshim.network.states import Wait
from tests.network.frames import frame
from tests.network.listening import HOST, Listening
from tests.network.transport import Transport


class Shared:
    """The port that all share, and the listener of one broker, "b1"."""

    def __init__(self, **limits: str) -> None:
        self.port, self.broker = Listening(), Listening(**limits)
        self.transport = Transport()
        self.first = self.port.entrance.buildProtocol(self.transport.getPeer())
        assert self.first is not None
        self.first.makeConnection(self.transport)

    def named(self, server_name: str | None) -> Connection:
        """The connection after the handshake."""

        def find(name: str | None) -> Any:
            return self.broker.entrance if name == "b1" else None

        assert self.first is not None
        return cast("Connection", moved(find, self.first, server_name))


def test_the_broker_that_is_named_answers() -> None:
    it = Shared()
    further = it.named("b1")
    further.secured(None)
    further.dataReceived(frame(b"request"))
    assert (it.port.requests, it.broker.requests) == ([], [b"request"])
    assert it.port.connections.connections == set()
    assert it.broker.connections.connections == {further}
    assert it.transport.reads


def test_a_client_that_waits_at_the_port_is_read_from_at_the_broker() -> None:
    it = Shared()
    assert it.first is not None
    it.first.wait(Wait.PLACE)
    assert not it.transport.reads
    it.named("b1")
    assert it.transport.reads


def test_the_broker_s_limits_count() -> None:
    it = Shared(max_connections_per_ip="0")
    assert it.named("b1") is it.first
    assert it.transport.disconnecting


def test_a_client_of_a_broker_that_does_not_run_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    it = Shared()
    assert it.named("b2") is it.first
    assert it.transport.disconnecting
    assert "b2 is a broker that does not run" in caplog.text
    assert HOST in caplog.text
