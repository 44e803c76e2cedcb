"""The ports of several brokers: consecutive, searched for if not named, kept while a broker is stopped."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kshim.callers.once import Once
from kshim.cluster.settings import ClientQuotas
from kshim.cluster.writer import Writer
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.network.listeners import BrokerListeners, CannotListen, Listening, open_all
from kshim.storage.memory import MemoryStore
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread
from tests.api.harness import result
from tests.network.free_ports import Reactor
from tests.network.no_limits import no_limits


def listen(reactor: Reactor, port: int, brokers: int = 3, **config: Any) -> list[int]:
    listeners = f"127.0.0.1:{port}"
    return [broker.address.port for broker in opened(reactor, brokers, listeners=listeners, **config)]


def opened(reactor: Reactor, brokers: int = 1, **config: Any) -> list[BrokerListeners]:
    """The listeners of each broker, which accept connections."""
    quotas = ClientQuotas(Writer(MemoryStore().metadata))
    settings = Config(brokers=brokers, **config)
    rounds = Rounds(reactor)
    listening = Listening(settings, reactor, rounds, Unread(reactor, rounds), Once(reactor), quotas, {})
    found = [listening.of_broker(index, lambda *_: None, no_limits(index + 1)) for index in range(brokers)]
    result(open_all(found))
    return found


def test_ports_are_consecutive() -> None:
    reactor = Reactor()
    assert listen(reactor, 9092) == [9092, 9093, 9094] == reactor.open


def test_a_free_run_is_found_for_port_0() -> None:
    reactor = Reactor(5001, 6002, free=(5000, 6000, 7000))
    assert listen(reactor, 0) == [7000, 7001, 7002] == reactor.open


def test_a_run_that_would_pass_the_last_port_is_none() -> None:
    assert listen(Reactor(free=(65534, 7000)), 0) == [7000, 7001, 7002]
    with pytest.raises(CannotListen, match=r"at the port after 127\.0\.0\.1:65535: it is the last"):
        listen(Reactor(free=(65535,) * 20), 0)


def test_one_port_that_is_taken_is_enough_and_nothing_is_left_open() -> None:
    reactor = Reactor(9094)
    with pytest.raises(CannotListen, match=r"cannot listen at 127\.0\.0\.1:9094: Address already in use"):
        listen(reactor, 9092)
    assert reactor.open == []


def test_there_is_an_end_to_looking_for_free_ports() -> None:
    with pytest.raises(CannotListen):
        listen(Reactor(5001, free=(5000,) * 100), 0)


def test_advertised_ports_are_consecutive_too() -> None:
    reactor = Reactor()
    listen(reactor, 9092, advertised_listeners="kafka.example:19092")
    assert [factory.shared.advertised for factory in reactor.factories] == [
        Endpoint("kafka.example", 19092),
        Endpoint("kafka.example", 19093),
        Endpoint("kafka.example", 19094),
    ]


def test_port_0_and_no_host_are_advertised_as_what_they_become(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "this.example")
    reactor = Reactor(free=(7000,))
    listen(reactor, 0, brokers=2, advertised_listeners=":0")
    advertised = [factory.shared.advertised for factory in reactor.factories]
    assert advertised == [Endpoint("this.example", 7000), Endpoint("this.example", 7001)]


# ---- several listeners

TWO = "IN://127.0.0.1:9092,OUT://127.0.0.1:9192"
PROTOCOLS = "IN:PLAINTEXT,OUT:PLAINTEXT"


def test_each_broker_is_at_each_listener() -> None:
    reactor = Reactor()
    first, second = opened(reactor, 2, listeners=TWO, listener_security_protocol_map=PROTOCOLS)
    assert first.addresses == {"IN": Endpoint("127.0.0.1", 9092), "OUT": Endpoint("127.0.0.1", 9192)}
    assert second.addresses == {"IN": Endpoint("127.0.0.1", 9093), "OUT": Endpoint("127.0.0.1", 9193)}
    assert first.address == Endpoint("127.0.0.1", 9092)


def test_a_connection_knows_its_listener_and_what_that_advertises() -> None:
    reactor = Reactor()
    told = "OUT://kafka.example:19192"
    opened(reactor, 2, listeners=TWO, listener_security_protocol_map=PROTOCOLS, advertised_listeners=told)
    found = {
        port: (factory.shared.listener_name, factory.shared.advertised)
        for port, factory in zip(reactor.open, reactor.factories, strict=True)
    }
    assert found == {
        9092: ("IN", None),
        9093: ("IN", None),
        9192: ("OUT", Endpoint("kafka.example", 19192)),
        9193: ("OUT", Endpoint("kafka.example", 19193)),
    }


def test_each_listener_may_be_at_free_ports_and_leaves_named_ones_to_the_others() -> None:
    reactor = Reactor(free=(9092, 6000, 7000))
    listeners = "A://:0,B://127.0.0.1:9092,C://:0"
    protocols = "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"
    (broker,) = opened(reactor, listeners=listeners, listener_security_protocol_map=protocols)
    assert [address.port for address in broker.addresses.values()] == [6000, 9092, 7000]


def test_where_one_listener_cannot_be_none_stays_open() -> None:
    reactor = Reactor(9193)
    with pytest.raises(CannotListen, match=r"127\.0\.0\.1:9193"):
        opened(reactor, 2, listeners=TWO, listener_security_protocol_map=PROTOCOLS)
    assert reactor.open == []


def test_requests_of_all_listeners_are_answered_by_another_function() -> None:
    reactor = Reactor()
    (broker,) = opened(reactor, listeners=TWO, listener_security_protocol_map=PROTOCOLS)
    broker.answer_by(other := lambda *_: None)
    assert [factory.shared.answer for factory in reactor.factories] == [other, other]


# ---- suspended listeners


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The ports that sockets of the system hold."""
    bound: list[tuple[str, int]] = []

    class Socket:
        def __init__(self, *_: Any) -> None: ...

        def setsockopt(self, *_: Any) -> None: ...

        def bind(self, address: tuple[str, int]) -> None:
            self._address = address
            bound.append(address)

        def close(self) -> None:
            bound.remove(self._address)

    monkeypatch.setattr(socket, "socket", Socket)
    return bound


def test_suspended_listeners_keep_their_ports(bound: list[tuple[str, int]]) -> None:
    reactor = Reactor()
    (broker,) = opened(reactor, listeners=TWO, listener_security_protocol_map=PROTOCOLS)
    assert result(broker.suspend()) is None
    assert (reactor.open, bound) == ([], [("127.0.0.1", 9092), ("127.0.0.1", 9192)])
    assert result(broker.resume()) is None
    assert (reactor.open, bound) == ([9092, 9192], [])
    result(broker.suspend())
    result(broker.close())
    assert (reactor.open, bound) == ([], [])


def test_all_listeners_are_resumed_or_none(bound: list[tuple[str, int]]) -> None:
    reactor = Reactor()
    (broker,) = opened(reactor, listeners=TWO, listener_security_protocol_map=PROTOCOLS)
    result(broker.suspend())
    reactor.taken.add(9192)
    with pytest.raises(CannotListen, match="9192"):
        result(broker.resume())
    assert (reactor.open, bound) == ([], [("127.0.0.1", 9092), ("127.0.0.1", 9192)])
    reactor.taken.clear()
    result(broker.resume())
    assert (reactor.open, bound) == ([9092, 9192], [])
