"""Where brokers accept connections: one listener each, on consecutive ports."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.error import CannotListenError

from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.network.client_socket import ClientSocket
from kshim.network.connection import Connection, Dispatch, Shared
from kshim.network.connections import Connections
from kshim.network.intake import Intake
from kshim.network.places import Limits, Places
from kshim.requests.context import Client
from kshim.requests.once import Once
from kshim.requests.unread import Unread

_ATTEMPTS = 20
_LAST_PORT = 65535


class CannotListen(Exception):
    """The server cannot listen at an address. str() is one line for the user."""


class Listener:
    """One broker's listening port, and the connections that arrive at it."""

    def __init__(self, connections: Connections, reactor: Any) -> None:
        self._connections = connections
        self._reactor = reactor
        self._port: Any = None
        self._kept: socket.socket | None = None
        self.address = Endpoint("", 0)
        """Where it listens, or listened before it was suspended."""

    def open(self, address: Endpoint) -> Endpoint:
        """Accept connections at `address`; return it with the port chosen for port 0. Raises CannotListen."""
        try:
            self._port = self._reactor.listenTCP(
                address.port, self._connections, backlog=511, interface=address.host
            )
        except CannotListenError as error:
            reason = getattr(error.socketError, "strerror", None) or error.socketError
            raise CannotListen(f"cannot listen at {address}: {reason}") from error
        self._port.transport = ClientSocket
        self._connections.port = self._port
        host = self._port.getHost()
        self.address = Endpoint(host.host, host.port)
        return self.address

    @property
    def connections(self) -> Collection[Connection]:
        """Those that are open now."""
        return self._connections.connections

    @property
    def intake(self) -> Intake:
        """What counts the requests on their way; all listeners share it."""
        return self._connections.shared.intake

    def close(self) -> Deferred[None]:
        """Accept nothing more. Fires when the port is free."""
        port, self._port = self._port, None
        self._connections.port = None
        self._release()
        return maybeDeferred(port.stopListening) if port is not None else succeed(None)

    def answer_by(self, answer: Dispatch) -> None:
        """Answer all further requests by another function."""
        self._connections.shared.answer = answer

    def drain(self) -> None:
        """Read no further requests, and ask those in flight to finish."""
        self._connections.drain()

    def disconnect(self) -> Deferred[None]:
        """Close all connections. Fires when they are gone."""
        return self._connections.close()

    def clients(self) -> list[Client]:
        """Those that are connected."""
        return [connection.client for connection in self._connections.connections]

    def suspend(self) -> Deferred[None]:
        """Refuse and close all connections until `resume`. Fires when they are gone.

        The port stays taken: a client's own socket, that the system gave this port, would not refuse them.
        """
        return Deferred.fromCoroutine(self._suspend())

    async def _suspend(self) -> None:
        await self.close()
        family = socket.AF_INET6 if ":" in self.address.host else socket.AF_INET
        self._kept = socket.socket(family, socket.SOCK_STREAM)
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # another process took the port; resume will raise
            self._kept.bind((self.address.host, self.address.port))
        self.drain()
        await self.disconnect()

    def resume(self) -> None:
        """Accept connections again. Raises CannotListen."""
        self._release()
        self.open(self.address)

    def _release(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def new_listeners(
    answers: Mapping[int, Dispatch],
    config: Config,
    reactor: Any,
    unread: Unread,
    once: Once,
    limits: Callable[[int], Limits],
) -> dict[int, Listener]:
    """A listener for each broker, by node id; none listens yet. Raises CannotListen.

    limits: what limits the connections of a broker.
    """
    listeners = {}
    intake = Intake(reactor, unread, config.queued_max_request_bytes)
    for node_id, answer in answers.items():
        advertised = config.advertised_listeners
        if advertised is not None:
            advertised = Endpoint(advertised.host, advertised.port + node_id - config.node_id)
            if advertised.port > _LAST_PORT:
                raise CannotListen(f"cannot advertise {advertised}: the last port is {_LAST_PORT}")
        shared = Shared(
            answer=answer,
            clock=reactor,
            unread=unread,
            intake=intake,
            once=once,
            max_request_bytes=config.socket_request_max_bytes,
            max_idle_ms=config.connections_max_idle_ms,
            advertised=advertised,
        )
        places = Places(limits(node_id), partial(_resolve, reactor))
        listeners[node_id] = Listener(Connections(shared, places), reactor)
    return listeners


def _resolve(reactor: Any, host: str) -> Deferred[list[str]]:
    """The addresses of a host name, looked up on another thread. Errbacks OSError."""
    from twisted.internet.threads import deferToThreadPool

    def addresses() -> list[str]:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]

    return deferToThreadPool(reactor, reactor.getThreadPool(), addresses)


def open_all(listeners: Mapping[int, Listener], first: Endpoint) -> Deferred[list[Endpoint]]:
    """Accept connections at `first` and at the ports after it; for port 0, search for free consecutive ports.

    Fires with all addresses; errbacks CannotListen.
    """
    return Deferred.fromCoroutine(_open_all(listeners, first))


async def _open_all(listeners: Mapping[int, Listener], first: Endpoint) -> list[Endpoint]:
    for attempts_left in reversed(range(_ATTEMPTS if first.port == 0 else 1)):
        try:
            return _open(list(listeners.values()), first)
        except CannotListen:
            for listener in listeners.values():
                await listener.close()
            if not attempts_left:
                raise
    raise AssertionError("no attempt was made")


def _open(listeners: list[Listener], first: Endpoint) -> list[Endpoint]:
    addresses = [listeners[0].open(first)]
    for listener in listeners[1:]:
        address = Endpoint(first.host, addresses[-1].port + 1)
        if address.port > _LAST_PORT:
            raise CannotListen(f"cannot listen at {address}: the last port is {_LAST_PORT}")
        addresses.append(listener.open(address))
    return addresses
