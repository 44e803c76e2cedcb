"""Connects to upstream brokers: looks up the address, connects, does the TLS handshake, logs in.

`Connector` is the only place that knows the security settings towards the upstream.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, cast

from twisted.internet import tcp
from twisted.internet.defer import Deferred, succeed
from twisted.internet.protocol import ClientFactory
from twisted.python.failure import Failure

from kshim.configs.endpoint import Endpoint
from kshim.network.client_socket import OutgoingSocket
from kshim.upstream.entering import Entering
from kshim.upstream.lost import Target, not_reached

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorFromThreads

    from kshim.configs.tls_client import TlsClientSettings
    from kshim.configs.upstream import UpstreamSecurity
    from kshim.storage.reactor import Reactor
    from kshim.upstream.logins import Logins


class Connector:
    """Connects targets: a `Link` or a `Passage`."""

    def __init__(self, reactor: Reactor, security: UpstreamSecurity | None = None) -> None:
        """security: None for plain text without a login."""
        self.reactor = reactor
        self._security = security
        self._logins: Logins | None = None
        self._new_socket: Callable[..., object] = OutgoingSocket

    def prepare(self) -> Deferred[None]:
        """Read the key stores and get a token, if the security settings need them. Errbacks
        WrongUpstreamProperty, LoginFailed.
        """
        return succeed(None) if self._security is None else self.use(self._security)

    def use(self, security: UpstreamSecurity) -> Deferred[None]:
        """Use these settings for connections to come. If they cannot be used, those before stay. Errbacks
        WrongUpstreamProperty, LoginFailed.
        """
        return Deferred.fromCoroutine(self._use(security))

    async def _use(self, security: UpstreamSecurity) -> None:
        new_socket = self.check(security)
        logins: Logins | None = None
        if security.login is not None:
            from kshim.upstream.logins import Logins

            logins = Logins(security.login, self.reactor)
            await logins.start()
        self._security, self._new_socket = security, new_socket
        if logins is not None and self._logins is not None:
            self._logins.become(logins)  # sessions of open connections renew their logins by it
        else:
            self.stop()
            self._logins = logins

    def check(self, security: UpstreamSecurity) -> Callable[..., object]:
        """Read the key stores of these settings; return what makes sockets with them. Raises
        WrongUpstreamProperty.
        """
        return OutgoingSocket if security.tls is None else self._new_tls_socket(security.tls)

    def _new_tls_socket(self, tls: TlsClientSettings) -> Callable[..., object]:
        """Return what makes encrypted sockets. Raises WrongUpstreamProperty."""
        from kshim.configs.tls import WrongTls
        from kshim.configs.upstream import WrongUpstreamProperty
        from kshim.network.encrypted import Encryption
        from kshim.network.handshakes import Handshakes
        from kshim.network.outgoing import TlsOutgoingSocket
        from kshim.network.tls_context import new_client_context
        from kshim.upstream.tls_faults import refused

        try:
            context = new_client_context(tls)
        except WrongTls as error:
            raise WrongUpstreamProperty(str(error)) from None
        encryption = Encryption(context, Handshakes(self.reactor), self.reactor)
        return partial(TlsOutgoingSocket, encryption, refused)

    def stop(self) -> None:
        """Stop renewing the token."""
        if self._logins is not None:
            self._logins.stop()

    def connect(self, target: Target, address: Endpoint, timeout_s: float, *, logs_in: bool = True) -> None:
        """Begin to connect. The target gets the connection, or its `lose` is called.

        timeout_s: the limit for TCP, and again for the handshake and the login together. logs_in: False for a
        connection on which a client will log in itself.
        """
        protocol: Any = target
        is_encrypted = self._security is not None and self._security.tls is not None
        logins = self._logins if logs_in else None
        target.session = None if logins is None else logins.new_session()
        if is_encrypted or logins is not None:
            protocol = Entering(target, address, self.reactor, timeout_s, is_encrypted=is_encrypted)
        connecting = _Connecting(self.reactor, target, protocol, address.port, timeout_s, self._new_socket)
        try:
            connecting.connect([str(ip_address(address.host))])
        except ValueError:
            from twisted.internet.threads import deferToThreadPool

            found = deferToThreadPool(
                cast("IReactorFromThreads", self.reactor),
                self.reactor.getThreadPool(),
                _addresses,
                address.host,
            )
            found.addCallbacks(connecting.connect, connecting.not_found)


class _Connection(tcp.Connector):
    new_socket: Callable[..., object]

    def _makeTransport(self) -> Any:  # noqa: N802
        return self.new_socket(self.host, self.port, self.bindAddress, self, self.reactor)


class _Connecting(ClientFactory):
    """Tries the addresses of a host in turn, until one accepts."""

    noisy = False

    def __init__(
        self,
        reactor: Reactor,
        target: Target,
        protocol: Any,
        port: int,
        timeout_s: float,
        new_socket: Callable[..., object],
    ) -> None:
        """protocol: gets the socket; it is the target itself if there is neither TLS nor a login."""
        self._reactor = reactor
        self._target = target
        self._protocol = protocol
        self._port = port
        self._timeout_s = timeout_s
        self._new_socket = new_socket
        self._hosts: list[str] = []

    def connect(self, hosts: Sequence[str]) -> None:
        self._hosts = list(hosts)
        self._connect_next()

    def _connect_next(self) -> None:
        host = self._hosts.pop(0)
        connection = _Connection(host, self._port, self, self._timeout_s, None, self._reactor)
        connection.new_socket = self._new_socket
        connection.connect()

    def buildProtocol(self, addr: Any) -> Any:
        return self._protocol

    def clientConnectionFailed(self, connector: object, reason: Failure) -> None:  # noqa: N802
        if self._hosts:
            self._connect_next()
        else:
            self._target.lose(not_reached(reason.value))

    def not_found(self, failure: Failure) -> None:
        """Report to the target that the host has no address."""
        self._target.lose(not_reached(failure.getErrorMessage()))


def _addresses(host: str) -> list[str]:
    """Return the host's addresses, in the system's order."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))
