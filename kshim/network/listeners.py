"""Accepts connections for brokers. Each broker has a port of every listener; a listener's ports are
consecutive.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from twisted.internet.defer import Deferred, gatherResults, maybeDeferred, succeed
from twisted.internet.error import CannotListenError

from kshim.callers import Client
from kshim.callers.once import Once
from kshim.cluster.settings import QuotaTable
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import LAST_PORT, ListenerConfig
from kshim.network.by_name import ByName, moved
from kshim.network.client_socket import ClientSocket
from kshim.network.connection import Connection
from kshim.network.connections import Connections, Entrance
from kshim.network.intake import Intake
from kshim.network.pace import AddressRates, Pace
from kshim.network.places import Limits, Places
from kshim.network.shared import Dispatch, Response, Shared
from kshim.turns import Turn
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorFromThreads

    from kshim.network.gate import GateContext
    from kshim.network.tls import Secured, Tls
    from kshim.storage.reactor import Port, Reactor

_ATTEMPTS = 20
Moves = Callable[["Secured", str | None], "Secured"]
"""See `Tls`."""


class CannotListen(Exception):
    """The server cannot listen at an address. str() is one line for the user."""


class Listener:
    """One broker's port of one listener."""

    def __init__(
        self,
        config: ListenerConfig,
        entrance: Entrance,
        reactor: Reactor,
        tls: Tls | None = None,
        *,
        shares_port: bool = False,
    ) -> None:
        """tls: encrypts the connections; None for plain text. shares_port: True if its connections come from
        a port that brokers share; then it listens nowhere itself.
        """
        self.shares_port = shares_port
        self._config = config
        self.tls = tls
        self._entrance = entrance
        self._reactor = reactor
        self._port: Port | None = None
        self._kept: socket.socket | None = None
        self.name = config.name
        self.address = config.bind
        """The address where it listens, or listened before it was suspended."""

    @property
    def entrance(self) -> Entrance:
        """Makes the listener's connections."""
        return self._entrance

    @property
    def shared(self) -> Shared:
        """The parts and settings that the listener's connections share."""
        return self._entrance.shared

    def open(self, address: Endpoint) -> None:
        """Accept connections at `address`. Raises CannotListen."""
        if self.shares_port:
            self.address = address
            self.shared.advertised = self._advertised()
            return
        try:
            self._port = self._reactor.listenTCP(
                address.port, self._entrance, backlog=511, interface=address.host
            )
        except CannotListenError as error:
            reason = getattr(error.socketError, "strerror", None) or error.socketError
            raise CannotListen(f"cannot listen at {address}: {reason}") from error
        self._port.transport = ClientSocket if self.tls is None else self.tls.transport
        host = self._port.getHost()
        self.address = Endpoint(host.host, host.port)
        self.shared.advertised = self._advertised()
        self._entrance.port = self._port

    def _advertised(self) -> Endpoint | None:
        advertised = self._config.advertised or self._config.named
        return advertised and Endpoint(
            advertised.host or socket.getfqdn(), advertised.port or self.address.port
        )

    def close(self) -> Deferred[None]:
        """Accept no more connections. Fires when the port is free."""
        port, self._port = self._port, None
        self._release()
        if port is None:
            return succeed(None)
        self._entrance.port = None
        return maybeDeferred(port.stopListening)

    async def suspend(self) -> None:
        """Accept no more connections, but keep the port bound. Otherwise the system could give it to a
        client's own socket, which would not refuse connections.
        """
        await self.close()
        if self.shares_port:
            return
        family = socket.AF_INET6 if ":" in self.address.host else socket.AF_INET
        self._kept = socket.socket(family, socket.SOCK_STREAM)
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # another process has the port; open will raise
            self._kept.bind((self.address.host, self.address.port))

    def resume(self) -> None:
        """Accept connections again. Raises CannotListen."""
        self._release()
        self.open(self.address)

    def _release(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None


class BrokerListeners:
    """All listeners of one broker, and the connections that arrive at them."""

    def __init__(self, listeners: Sequence[Listener], connections: Connections) -> None:
        self._listeners = listeners
        self._connections = connections

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._listeners)

    @property
    def address(self) -> Endpoint:
        """The first listener's address."""
        return self._listeners[0].address

    @property
    def addresses(self) -> dict[str, Endpoint]:
        """The listeners' addresses, by listener name."""
        return {listener.name: listener.address for listener in self._listeners}

    @property
    def connections(self) -> Collection[Connection]:
        """The open connections."""
        return self._connections.connections

    @property
    def intake(self) -> Intake:
        """Counts the incomplete requests of all listeners, which share it."""
        return self._listeners[0].shared.intake

    def close(self) -> Deferred[None]:
        """Accept no more connections. Fires when the ports are free."""
        return gatherResults([each.close() for each in self._listeners]).addCallback(lambda _: None)

    def answer_by(self, answer: Dispatch) -> None:
        """Answer all further requests by another function."""
        for listener in self._listeners:
            listener.shared.answer = answer

    def drain(self) -> None:
        """Read no further requests, and ask those in flight to finish."""
        self._connections.drain()

    def disconnect(self) -> Deferred[None]:
        """Close all connections. Fires when they are gone."""
        return self._connections.close()

    def clients(self) -> list[Client]:
        """Return the connected clients."""
        return [connection.client for connection in self._connections.connections]

    def suspend(self) -> Deferred[None]:
        """Refuse and close all connections until `resume`. Fires when they are gone."""
        return Deferred.fromCoroutine(self._suspend())

    async def _suspend(self) -> None:
        for listener in self._listeners:
            await listener.suspend()
        self.drain()
        await self.disconnect()

    def resume(self) -> Deferred[None]:
        """Accept connections again, at all addresses or at none. Errbacks CannotListen."""
        return Deferred.fromCoroutine(self._resume())

    async def _resume(self) -> None:
        try:
            for listener in self._listeners:
                listener.resume()
        except CannotListen:
            for listener in self._listeners:
                await listener.suspend()
            raise


class Listening:
    """Makes the listeners of brokers, and keeps what all listeners of this process share."""

    def __init__(
        self,
        config: Config,
        reactor: Reactor,
        rounds: Rounds,
        unread: Unread,
        once: Once,
        quotas: QuotaTable,
        gates: Mapping[str, GateContext],
    ) -> None:
        """quotas: limit how fast addresses may connect. gates: of listeners with SASL, by listener name."""
        self._config = config
        self._reactor = reactor
        self._rounds = rounds
        self._unread = unread
        self._once = once
        self._gates = gates
        self._intake = Intake(reactor, unread, config.queued_max_request_bytes)
        self._resolve = partial(_resolve, reactor)
        self._addresses = AddressRates(quotas, self._resolve)
        is_encrypted = any(each.protocol.is_tls for each in config.listener_configs)
        self._new_tls = _new_tls(config, reactor) if is_encrypted else None

    def of_broker(self, index: int, answer: Dispatch, limits: Limits) -> BrokerListeners:
        """Return the listeners of a broker; none listens yet. Raises CannotListen.

        index: the broker's place after the first one, whose ports are configured. limits: the broker's
        limits of connections.
        """
        pace = Pace(limits, self._config, self._addresses, self._reactor)
        connections = Connections(self._reactor, Places(limits, self._resolve), pace)
        listeners = []
        for each in self._config.listener_configs:
            entrance = Entrance(self._shared(each, answer), connections)
            connections.entrances.append(entrance)
            if each.name in self._config.broker_names:
                listener = Listener(each, entrance, self._reactor, shares_port=True)
            else:
                listener = Listener(each.of_broker(index), entrance, self._reactor, self._tls(each))
            listeners.append(listener)
        return BrokerListeners(listeners, connections)

    def for_all(self, name: str, by_name: ByName, limits: Limits) -> BrokerListeners:
        """Return the one port of a listener for all brokers; it does not listen yet. Raises CannotListen.

        name: the listener's. limits: of connections that have not named a broker yet.
        """
        (config,) = (each for each in self._config.listener_configs if each.name == name)
        pace = Pace(limits, self._config, self._addresses, self._reactor)
        connections = Connections(self._reactor, Places(limits, self._resolve), pace)
        entrance = Entrance(self._shared(config, _unnamed), connections)
        connections.entrances.append(entrance)
        return BrokerListeners(
            [Listener(config, entrance, self._reactor, self._tls(config, by_name))], connections
        )

    def _tls(self, listener: ListenerConfig, by_name: ByName | None = None) -> Tls | None:
        if self._new_tls is None or not listener.protocol.is_tls:
            return None
        return self._new_tls(listener, by_name and partial(moved, by_name))

    def _shared(self, listener: ListenerConfig, answer: Dispatch) -> Shared:
        return Shared(
            answer=answer,
            clock=self._reactor,
            rounds=self._rounds,
            unread=self._unread,
            intake=self._intake,
            once=self._once,
            max_request_bytes=self._config.socket_request_max_bytes,
            max_idle_ms=self._config.connections_max_idle_ms,
            listener_name=listener.name,
            protocol=listener.protocol,
            gates=self._gates.get(listener.name),
        )


def _unnamed(frame: bytes | bytearray, client: Client, turn: Turn) -> Response:
    """Answer nobody: a client names a broker before its first request."""
    raise AssertionError(client)


def _new_tls(config: Config, reactor: Reactor) -> Callable[[ListenerConfig, Moves | None], Tls]:
    """Return a function that makes the encryption of a listener, or raises CannotListen. Imports TLS only
    now.
    """
    from kshim.configs.tls import WrongTls, tls_settings
    from kshim.network.handshakes import Handshakes
    from kshim.network.tls import Tls

    handshakes = Handshakes(reactor)

    def new(listener: ListenerConfig, by_name: Moves | None) -> Tls:
        names_clients = not listener.protocol.is_sasl
        try:
            settings = tls_settings(config.given, listener)
            return Tls(
                settings,
                names_clients=names_clients,
                handshakes=handshakes,
                clock=reactor,
                by_name=by_name,
            )
        except WrongTls as error:
            raise CannotListen(f"listener {listener.name}: {error}") from error

    return new


def _resolve(reactor: Reactor, host: str) -> Deferred[list[str]]:
    """Look up the addresses of a host name on another thread. Errbacks OSError."""
    from twisted.internet.threads import deferToThreadPool

    def addresses() -> list[str]:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]

    return deferToThreadPool(cast("IReactorFromThreads", reactor), reactor.getThreadPool(), addresses)


def open_all(brokers: Collection[BrokerListeners]) -> Deferred[None]:
    """Accept connections at all listeners. Port 0 stands for free ports, consecutive for the brokers.

    Fires when that is done; errbacks CannotListen.
    """
    return Deferred.fromCoroutine(_open_all(brokers))


async def _open_all(brokers: Collection[BrokerListeners]) -> None:
    by_name = zip(*brokers, strict=True)
    try:
        # Listeners with named ports come first, so that no other listener takes one of these ports.
        for of_one_name in sorted(by_name, key=lambda found: found[0].address.port == 0):
            await _open(of_one_name, of_one_name[0].address)
    except CannotListen:
        for broker in brokers:
            await broker.close()
        raise


async def _open(listeners: Sequence[Listener], first: Endpoint) -> None:
    """Accept connections at `first`, and at the ports after it. Raises CannotListen."""
    for attempts_left in reversed(range(_ATTEMPTS if first.port == 0 else 1)):
        try:
            listeners[0].open(first)
            for before, listener in pairwise(listeners):
                listener.open(_after(before.address))
        except CannotListen:
            for listener in listeners:
                await listener.close()
            if not attempts_left:
                raise
        else:
            return


def _after(address: Endpoint) -> Endpoint:
    if address.port == LAST_PORT:
        raise CannotListen(f"cannot listen at the port after {address}: it is the last one")
    return Endpoint(address.host, address.port + 1)
