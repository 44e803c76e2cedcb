"""The listening ports of all brokers, and the brokers that answer at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from twisted.internet.defer import gatherResults

from kshim.answering.views import Answering, GroupsView
from kshim.callers import Client
from kshim.cluster.broker_configs import broker_text
from kshim.network.by_name import ByName
from kshim.network.listeners import BrokerListeners, Listener, Listening
from kshim.server import StartError

if TYPE_CHECKING:
    from kshim.cluster.broker_configs import BrokerConfigs
    from kshim.cluster.scram import KnownUsers
    from kshim.cluster.settings import QuotaTable
    from kshim.configs.endpoint import Endpoint
    from kshim.network.gate import GateContext, Relayed
    from kshim.network.renewal import Renewal
    from kshim.network.shared import Measured, Response
    from kshim.network.traffic import Traffic
    from kshim.server.parts import Parts
    from kshim.turns import Turn
    from kshim.turns.promise import Promise

Addresses = Mapping[str, Sequence["Endpoint"]]
"""All brokers' addresses, by listener name."""


class AnyBroker(Answering, GroupsView, Protocol):
    """A broker of either backend."""


B = TypeVar("B", bound=AnyBroker)
B_contra = TypeVar("B_contra", bound=AnyBroker, contravariant=True)


class BehindPorts(Protocol[B_contra]):
    """The part of a backend that its ports need."""

    @property
    def answer(
        self,
    ) -> Callable[[B_contra, bytes | bytearray, Client, Turn], Response | Promise[Response]]:
        """Answers a request; see `dispatch.answer`."""

    @property
    def quotas(self) -> QuotaTable:
        """The quotas of clients and addresses."""

    @property
    def users(self) -> KnownUsers:
        """The users with passwords for SCRAM."""

    @property
    def relayed(self) -> Relayed | None:
        """Relays clients' logins to a server beyond; None if clients authenticate here."""

    def broker_configs(self, node_id: int) -> BrokerConfigs:
        """Return the current configs of a broker."""


class Ports(Generic[B]):
    """Makes the brokers' listeners, which a backend opens, and closes them."""

    def __init__(self, parts: Parts, backend: BehindPorts[B], broker: B) -> None:
        """broker: shares most with all others, and is none of them itself. Raises StartError."""
        config = parts.config
        shared = parts.reactor, parts.rounds, parts.unread, parts.once
        gates = _gates(broker, backend.users, backend.relayed)
        self.broker = broker
        """Shares most with all others, and is none of them itself."""
        self._parts = parts
        self._backend = backend
        self._listening = Listening(config, *shared, backend.quotas, gates)
        self._renewal: Renewal | None = None
        self.brokers: dict[int, B] = {}
        """The broker at each port, by node id."""
        self.listeners: dict[int, BrokerListeners] = {}
        """The listeners of each broker, by node id."""
        self.for_all: dict[str, BrokerListeners] = {}
        """The ports that all brokers share, by listener name."""
        self.traffic: Traffic | None = None
        """Counts requests; None if nobody sees them counted."""
        self.measured: Measured = partial
        """Makes a listener's function from an answering function and a broker."""
        if config.http_listener is not None:
            from kshim.network.traffic import Traffic

            self.traffic = Traffic()
            self.measured = self.traffic.measured

    def add(self, broker: B, index: int) -> BrokerListeners:
        """Make a broker's listeners; none listens yet. Raises CannotListen.

        index: the broker's place after the first one, whose ports are configured.
        """
        limits = partial(_limit, self._backend, self._parts.config.node_id + index)
        made = self._listening.of_broker(index, self.measured(self._backend.answer, broker), limits)
        self._watch(made)
        self.brokers[broker.node_id], self.listeners[broker.node_id] = broker, made
        return made

    def add_for_all(self, name: str, by_name: ByName) -> Listener:
        """Make the one port of a listener for all brokers; it does not listen yet. Raises CannotListen."""
        limits = partial(_limit, self._backend, self._parts.config.node_id)
        made = self.for_all[name] = self._listening.for_all(name, by_name, limits)
        self._watch(made)
        (listener,) = made
        return listener

    def _watch(self, made: BrokerListeners) -> None:
        for listener in made:
            if listener.tls is not None:
                self._renewed().watch(listener.tls)

    def remove(self, node_id: int) -> None:
        """Close and forget a broker's listeners, because one of them cannot listen."""
        listeners = self.listeners.pop(node_id)
        listeners.close()
        for listener in listeners:
            if listener.tls is not None:
                self._renewed().forget(listener.tls)

    def _renewed(self) -> Renewal:
        """Return what reads changed certificates again, imported and made for the first listener with TLS."""
        if self._renewal is None:
            from kshim.network.renewal import Renewal

            self._renewal = Renewal(self._parts.reactor)
            self._parts.stops.callback(self._renewal.stop)
        return self._renewal

    def addresses(self) -> Addresses:
        """All brokers' addresses in the order of their ports, by listener name."""
        found = [listeners.addresses for listeners in self.listeners.values()]
        names = found[0] if found else ()
        return {name: sorted({each[name] for each in found}, key=lambda it: it.port) for name in names}

    def clients(self) -> list[Client]:
        """Return the connected clients of all brokers."""
        return [client for listeners in self.listeners.values() for client in listeners.clients()]

    async def close(self) -> None:
        """Accept no more connections, and ask the requests in flight to finish."""
        for listeners in self._all():
            await listeners.close()
        for listeners in self._all():
            listeners.drain()

    async def disconnect(self) -> None:
        """Close all connections. Returns when they are gone."""
        await gatherResults([listeners.disconnect() for listeners in self._all()])

    def _all(self) -> Sequence[BrokerListeners]:
        return (*self.for_all.values(), *self.listeners.values())


def _limit(backend: BehindPorts[B], node_id: int, name: str) -> str:
    """Return the current text of one of a broker's limits of connections."""
    return broker_text(name, backend.broker_configs(node_id))


def _gates(broker: Answering, users: KnownUsers, relayed: Relayed | None) -> Mapping[str, GateContext]:
    """Return the gates of the listeners with SASL, by listener name. Raises StartError.

    They are imported only if there is such a listener: a plain server starts without.
    """
    if not any(listener.protocol.is_sasl for listener in broker.config.listener_configs):
        return {}
    from kshim.configs.sasl import WrongSasl
    from kshim.network.gates import new_gates

    try:
        return new_gates(broker, users, relayed)
    except WrongSasl as error:
        raise StartError(str(error)) from error
