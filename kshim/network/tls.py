"""The certificate and rules of a TLS listener, and the encrypted connection of one of its clients."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, Protocol

from twisted.internet import tcp
from twisted.python.failure import Failure

from kshim.callers.mistake import Mistake
from kshim.callers.principal import USER, Principal
from kshim.configs.principal_rules import mapped, parse_rules
from kshim.configs.tls import TlsSettings
from kshim.network.certificate_names import subject
from kshim.network.client_socket import Receiver
from kshim.network.encrypted import EncryptedSocket, Encryption
from kshim.network.first_bytes import stranger
from kshim.network.handshakes import Handshakes
from kshim.network.tls_context import new_context, reason_of
from kshim.storage.clock import Timer, TimerClock

HANDSHAKE_S = 10.0
"""How long a client may take for its handshake. Clients give up after 10 to 30 s."""
_HANDSHAKE_RECORD = 0x16

_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": Mistake.NO_CERTIFICATE,
    "CERTIFICATE_VERIFY_FAILED": Mistake.CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": Mistake.NOT_TRUSTED,
    "SSLV3_ALERT_BAD_CERTIFICATE": Mistake.NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": Mistake.NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": Mistake.NOT_TRUSTED,
    "UNSUPPORTED_PROTOCOL": Mistake.TLS_VERSION,
    "VERSION_TOO_LOW": Mistake.TLS_VERSION,
    "TLSV1_ALERT_PROTOCOL_VERSION": Mistake.TLS_VERSION,
    "NO_SHARED_CIPHER": Mistake.CIPHER_SUITE,
}
"""The mistakes behind OpenSSL's reasons."""


class NamedSession(ssl.SSLObject):
    """A session of a client that may have named the server."""

    server_name: str | None = None
    """The name to which the client connects, from its first message; None if it names none."""


def _note_name(session: ssl.SSLObject, server_name: str | None, _: ssl.SSLContext) -> None:
    """Keep the name that OpenSSL has found in a client's first message."""
    assert isinstance(session, NamedSession)
    session.server_name = server_name


class Tls(Encryption):
    """The certificate, the rules and the handshakes of one listener."""

    def __init__(
        self,
        settings: TlsSettings,
        *,
        names_clients: bool,
        handshakes: Handshakes,
        clock: TimerClock,
        by_name: Callable[[Secured, str | None], Secured] | None = None,
    ):
        """names_clients: True if clients' certificates name their principals. by_name: returns the protocol
        that goes on with a client, given the first one and the name of the server to which it connects.

        Raises WrongTls.
        """
        self.by_name = by_name
        super().__init__(self._new_context(settings), handshakes, clock)
        self._names_clients = names_clients
        self.settings, self._rules = settings, parse_rules(settings.mapping_rules)

    def use(self, settings: TlsSettings) -> None:
        """Read the stores, and use them for new connections. Raises WrongTls; then nothing changes."""
        context, rules = self._new_context(settings), parse_rules(settings.mapping_rules)
        self.settings, self.context, self._rules = settings, context, rules

    def _new_context(self, settings: TlsSettings) -> ssl.SSLContext:
        """Make a context; its sessions keep the name of the server, if that matters. Raises WrongTls."""
        context = new_context(settings)
        if self.by_name is not None:
            context.sslobject_class = NamedSession
            context.sni_callback = _note_name
        return context

    def transport(self, *arguments: object) -> TlsSocket:
        """Make the socket of an accepted connection, with the arguments of Twisted's Port."""
        return TlsSocket(self, *arguments)

    def principal(self, certificate: bytes | None) -> Principal | None:
        """Return the principal that a certificate names; None if it names none.

        Raises ValueError, with the certificate's name, if no rule matches it.
        """
        if certificate is None or not self._names_clients:
            return None
        name = subject(certificate)
        found = mapped(self._rules, name)
        if found is None:
            raise ValueError(name)
        return Principal(USER, found)


class Secured(Receiver, Protocol):
    """The protocol above a TlsSocket."""

    def secured(self, principal: Principal | None) -> None:
        """Called after the handshake. principal: from the client's certificate; None if it names none."""

    def insecure(self, mistake: Mistake, **details: object) -> None:
        """Close, because the handshake failed."""


class TlsSocket(EncryptedSocket, tcp.Server):
    """A client's connection, which hands nothing over before the handshake is done."""

    protocol: Secured  # type: ignore[assignment]

    def __init__(self, tls: Tls, *arguments: object) -> None:
        self._tls = tls
        super().__init__(tls, *arguments)
        self._timer: Timer = tls.clock.callLater(HANDSHAKE_S, self._is_late)

    def _begun(self, start: bytes) -> bool:
        """True if a client begins as TLS does."""
        if start[0] == _HANDSHAKE_RECORD:
            self._session = self._tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
            return True
        self._is_ended = True
        who = stranger(start)
        if who is None:
            self.protocol.insecure(Mistake.NO_TLS)
        else:
            self._put(who.answer)
            self.protocol.insecure(who.mistake, text=start[:32].decode("latin-1"))
        return False

    def _plan(self, step: Callable[[], None]) -> None:
        self._tls.handshakes.add(str(self.hostname), step)

    def _secured(self, session: ssl.SSLObject) -> None:
        self._timer.cancel()
        try:
            principal = self._tls.principal(session.getpeercert(binary_form=True))
        except ValueError as error:
            self.protocol.insecure(Mistake.NO_RULE, name=str(error))
            return
        self._is_secure = True
        if self._tls.by_name is not None:
            assert isinstance(session, NamedSession)
            self.protocol = self._tls.by_name(self.protocol, session.server_name)
        self.protocol.secured(principal)

    def _failed(self, error: ssl.SSLError) -> None:
        mistake = _REASONS.get(error.reason or "", Mistake.TLS_FAILED)
        self.protocol.insecure(mistake, why=reason_of(error))

    def _is_late(self) -> None:
        if self._is_paused:  # it waits for its place
            self._timer = self._tls.clock.callLater(HANDSHAKE_S, self._is_late)
        elif not self.disconnecting:
            self.protocol.insecure(Mistake.NO_HANDSHAKE, seconds=HANDSHAKE_S)
        else:
            self.abortConnection()

    def connectionLost(self, reason: Failure) -> None:
        if self._timer.active():
            self._timer.cancel()
        super().connectionLost(reason)
