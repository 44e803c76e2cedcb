"""The listeners of all brokers: certificates that change are read again, and all stop together."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kshim.network.renewal import LOOK_S
from tests.api.harness import result
from tests.network.free_ports import Reactor
from tests.network.tls_pair import authority, server
from tests.server.ports_in_front import new_ports


def test_certificates_of_a_broker_that_is_added_later_are_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "server.pem"
    file.write_text(server().key_pem + server().certificate_pem)
    reactor = Reactor()
    parts, ports = new_ports(reactor, listeners="SSL://127.0.0.1:9000", ssl_keystore_location=str(file))
    for index in range(2):
        ports.add(replace(ports.broker, node_id=7 + index), index)
        reactor.advance(LOOK_S)
    assert caplog.messages == []
    other = authority().server(["kshim.example"])
    file.write_text(other.key_pem + other.certificate_pem)
    ports.remove(7)
    reactor.advance(LOOK_S)
    assert caplog.messages == ["listener SSL: it has read its changed certificates"]
    result(Deferred.fromCoroutine(parts.stops.aclose()))
    assert reactor.getDelayedCalls() == []


def test_the_limits_are_those_of_the_broker_s_configs() -> None:
    _, ports = new_ports(Reactor(), listeners="127.0.0.1:9000", max_connections="3")
    (listener,) = ports.add(ports.broker, 0)
    assert listener._entrance.connections._places.most == 3
