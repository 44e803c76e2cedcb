"""The port of an upstream broker: the first one, plus the broker's index."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.configs.endpoint import Endpoint
from kshim.network.listeners import CannotListen
from kshim.server.ports import Ports
from kshim.upstream.brokers import Brokers
from kshim.upstream.indexes import Indexes
from kshim.upstream.ports import UpstreamPorts
from tests.network.free_ports import Reactor
from tests.server.ports_in_front import new_ports

TWO = {
    "listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:7000",
    "listener_security_protocol_map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
    "inter_broker_listener_name": "ONE",
}


class AnyPort:
    def suspend(self) -> Any: ...
    def resume(self) -> Any: ...


def beyond(connection: object) -> Any:
    """The far side of a connection; nobody connects here."""


def opened(reactor: Reactor, **properties: str) -> tuple[Ports[Any], UpstreamPorts]:
    """Ports, of which those of broker 5 with index 0 are open."""
    _, ports = new_ports(reactor, **properties)
    in_front = UpstreamPorts(ports, Brokers(Indexes(None), lambda *_: AnyPort()))
    in_front.open(5, 0, beyond)
    return ports, in_front


def test_each_listener_counts_from_its_first_port() -> None:
    reactor = Reactor(free=(5000,))
    ports, in_front = opened(reactor, **TWO)
    in_front.open(9, 2, beyond)
    assert reactor.open == [5000, 7000, 5002, 7002]
    assert ports.addresses() == {
        "ONE": [Endpoint("127.0.0.1", 5000), Endpoint("127.0.0.1", 5002)],
        "TWO": [Endpoint("127.0.0.1", 7000), Endpoint("127.0.0.1", 7002)],
    }
    assert in_front.reached(9) == {"ONE": Endpoint("127.0.0.1", 5002), "TWO": Endpoint("127.0.0.1", 7002)}


def test_a_broker_with_a_port_that_is_taken_has_none() -> None:
    reactor = Reactor(7001, free=(5000,))
    ports, in_front = opened(reactor, **TWO)
    with pytest.raises(CannotListen, match=r"cannot listen at 127\.0\.0\.1:7001"):
        in_front.open(9, 1, beyond)
    assert (reactor.open, list(ports.listeners)) == ([5000, 7000], [5])
    reactor.taken.clear()
    in_front.open(9, 1, beyond)
    assert (reactor.open, list(ports.listeners)) == ([5000, 7000, 5001, 7001], [5, 9])


def test_there_is_no_port_after_the_last() -> None:
    _, in_front = opened(Reactor(), listeners="127.0.0.1:65535")
    with pytest.raises(CannotListen, match="cannot listen at port 65536: the last port is 65535"):
        in_front.open(9, 1, beyond)
