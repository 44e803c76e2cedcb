"""The HTTP listener of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.error import CannotListenError

from kshim.configs.endpoint import Endpoint
from kshim.http.channel import Site
from kshim.http.facts import Facts
from kshim.http.guard import Guard
from kshim.http.routes import new_routes
from kshim.network.listeners import CannotListen

if TYPE_CHECKING:
    from kshim.storage.reactor import Port, Reactor


class HttpListener:
    """Listens from `open` to `close`."""

    def __init__(self, facts: Facts, token: str, reactor: Reactor) -> None:
        self._facts = facts
        self._token = token
        self._reactor = reactor
        self._port: Port | None = None
        self._site: Site | None = None

    def open(self, address: Endpoint) -> Endpoint:
        """Accept connections at `address`; return it with the port chosen for port 0. Raises CannotListen."""
        site = self._site = Site(self._facts, new_routes(self._facts), Guard(self._token))
        try:
            self._port = self._reactor.listenTCP(address.port, site, interface=address.host)
        except CannotListenError as error:
            reason = getattr(error.socketError, "strerror", None) or error.socketError
            raise CannotListen(f"cannot listen at {address} for HTTP: {reason}") from error
        site.guard.port = self._port.getHost().port
        return Endpoint(address.host, site.guard.port)

    def close(self) -> Deferred[None]:
        """Close all connections. Fires when the port is free."""
        port, self._port = self._port, None
        if self._site is not None:
            self._site.abort()
        return maybeDeferred(port.stopListening) if port is not None else succeed(None)
