"""Connections to upstream brokers as transports without copies; see `client_socket`."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

from twisted.internet import tcp
from twisted.internet.error import ConnectError
from twisted.internet.protocol import ClientFactory
from twisted.python.failure import Failure

from kshim.configs.endpoint import Endpoint
from kshim.upstream.passage import Passage
from kshim.upstream.splicing import SplicingSocket


class BrokerSocket(SplicingSocket, tcp.Client):
    """An upstream broker that this process has connected to."""


class _Connector(tcp.Connector):
    def _makeTransport(self) -> BrokerSocket:  # noqa: N802
        return BrokerSocket(self.host, self.port, self.bindAddress, self, self.reactor)


class _Connecting(ClientFactory):
    """Connects a passage to the first of some addresses that answers."""

    noisy = False

    def __init__(self, reactor: Any, passage: Passage, port: int, timeout_s: float) -> None:
        self._reactor = reactor
        self._passage = passage
        self._port = port
        self._timeout_s = timeout_s
        self._hosts: list[str] = []

    def connect(self, hosts: Sequence[str]) -> None:
        self._hosts = list(hosts)
        self._connect_next()

    def _connect_next(self) -> None:
        host = self._hosts.pop(0)
        _Connector(host, self._port, self, self._timeout_s, None, self._reactor).connect()

    def buildProtocol(self, addr: Any) -> Passage:
        return self._passage

    def clientConnectionFailed(self, connector: Any, reason: Failure) -> None:  # noqa: N802
        if self._hosts:
            self._connect_next()
        else:
            self._passage.lose(f"cannot be reached: {reason_of(reason.value)}")

    def not_found(self, failure: Failure) -> None:
        """There is no such host."""
        self._passage.lose(f"cannot be reached: {failure.getErrorMessage()}")


def connect_passage(reactor: Any, passage: Passage, address: Endpoint, timeout_s: float) -> None:
    """Begin to connect to a broker. If that fails, the passage is lost."""
    connecting = _Connecting(reactor, passage, address.port, timeout_s)
    try:
        connecting.connect([str(ip_address(address.host))])
    except ValueError:
        from twisted.internet.threads import deferToThreadPool

        found = deferToThreadPool(reactor, reactor.getThreadPool(), _addresses, address.host)
        found.addCallbacks(connecting.connect, connecting.not_found)


def _addresses(host: str) -> list[str]:
    """Of a host, as the system orders them."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def reason_of(error: object) -> str:
    """Why there is no connection, in the system's words."""
    number = error.osError if isinstance(error, ConnectError) else None
    return os.strerror(number) if number else str(error).rstrip(".")
