"""The ports of several brokers: consecutive, searched for if not named, kept while a broker is stopped."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock

from kshim.configs.config import PROPERTIES, Config
from kshim.configs.endpoint import Endpoint
from kshim.network.listeners import CannotListen, Listener, new_listeners, open_all
from kshim.network.places import Limits
from kshim.requests.once import Once
from kshim.requests.unread import Unread
from tests.api.harness import result


class Port:
    def __init__(self, reactor: Reactor, address: Endpoint) -> None:
        self._reactor, self._address = reactor, address

    def getHost(self) -> Endpoint:  # noqa: N802
        return self._address

    def stopListening(self) -> None:  # noqa: N802
        self._reactor.open.remove(self._address.port)


class Reactor(MemoryReactorClock):
    """Some ports are taken; port 0 gives the next of `free`."""

    def __init__(self, *taken: int, free: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.taken, self.free = set(taken), list(free)
        self.open: list[int] = []
        self.factories: list[Any] = []

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:  # noqa: N802
        port = port or self.free.pop(0)
        if port in self.taken or port in self.open:
            raise CannotListenError(interface, port, OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE)))
        self.open.append(port)
        self.factories.append(factory)
        return Port(self, Endpoint(interface, port))


def no_limits(node_id: int) -> Limits:
    return lambda name: PROPERTIES[name].default


def listen(reactor: Reactor, port: int, brokers: int = 3, **config: Any) -> list[int]:
    answers = dict.fromkeys(range(1, brokers + 1), lambda *_: None)
    listeners = new_listeners(
        answers, Config(brokers=brokers, **config), reactor, Unread(reactor), Once(reactor), no_limits
    )
    addresses: list[Endpoint] = result(open_all(listeners, Endpoint("127.0.0.1", port)))
    return [address.port for address in addresses]


def test_ports_are_consecutive() -> None:
    reactor = Reactor()
    assert listen(reactor, 9092) == [9092, 9093, 9094] == reactor.open


def test_a_free_run_is_found_for_port_0() -> None:
    reactor = Reactor(5001, 6002, free=(5000, 6000, 7000))
    assert listen(reactor, 0) == [7000, 7001, 7002] == reactor.open


def test_a_run_that_would_pass_the_last_port_is_none() -> None:
    assert listen(Reactor(free=(65534, 7000)), 0) == [7000, 7001, 7002]
    with pytest.raises(CannotListen, match="65536: the last port is 65535"):
        listen(Reactor(), 65534)


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
    listen(reactor, 9092, advertised_listeners=Endpoint("kafka.example", 19092))
    assert [factory.shared.advertised for factory in reactor.factories] == [
        Endpoint("kafka.example", 19092),
        Endpoint("kafka.example", 19093),
        Endpoint("kafka.example", 19094),
    ]


def test_an_advertised_port_that_cannot_be() -> None:
    with pytest.raises(CannotListen, match="cannot advertise h:65536: the last port is 65535"):
        listen(Reactor(), 9092, advertised_listeners=Endpoint("h", 65534))


def test_a_suspended_listener_keeps_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[tuple[str, int]] = []

    class Socket:
        def __init__(self, *_: Any) -> None: ...

        def setsockopt(self, *_: Any) -> None: ...

        def bind(self, address: tuple[str, int]) -> None:
            bound.append(address)

        def close(self) -> None:
            bound.pop()

    monkeypatch.setattr(socket, "socket", Socket)
    reactor = Reactor()
    (listener,) = new_listeners(
        {1: lambda *_: None}, Config(), reactor, Unread(reactor), Once(reactor), no_limits
    ).values()
    assert isinstance(listener, Listener)
    listener.open(Endpoint("127.0.0.1", 9092))
    assert result(listener.suspend()) is None
    assert (reactor.open, bound) == ([], [("127.0.0.1", 9092)])
    listener.resume()
    assert (reactor.open, bound) == ([9092], [])
    result(listener.suspend())
    result(listener.close())
    assert (reactor.open, bound) == ([], [])
