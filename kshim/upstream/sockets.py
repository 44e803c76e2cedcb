"""Transports to upstream brokers that receive without copies; see `client_socket`."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, Protocol

from twisted.internet import tcp
from twisted.python.failure import Failure

from kshim.network.client_socket import Receiver
from kshim.network.encrypted import EncryptedSocket, reason_of
from kshim.upstream.lost import BrokerRefused
from kshim.upstream.splicing import SplicingSocket

_CHECK: Final = "upstream.ssl.endpoint.identification.algorithm"
_WRONG_HOST: Final = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


class BrokerSocket(SplicingSocket, tcp.Client):
    """A connection that this process has made to an upstream broker."""


class Secured(Receiver, Protocol):
    """The protocol above a TlsBrokerSocket."""

    def secured(self) -> None:
        """Called when the handshake is done."""


class TlsBrokerSocket(EncryptedSocket, tcp.Client):
    """An encrypted connection to an upstream broker. It hands nothing over before the handshake is done."""

    protocol: Secured  # type: ignore[assignment]

    def shake_hands(self, host: str) -> None:
        """Begin the handshake with a broker whose certificate has to name `host`."""
        self._session = self._encryption.context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=host
        )
        self._plan(self._shake_hands)

    def _begun(self, start: bytes) -> bool:
        return False

    def _plan(self, step: Callable[[], None]) -> None:
        self._encryption.handshakes.add(str(self.addr), step)

    def _secured(self, session: ssl.SSLObject) -> None:
        self._is_secure = True
        self.protocol.secured()

    def _failed(self, error: ssl.SSLError) -> None:
        self._send()
        self.disconnecting = True
        self.stopReading()  # type: ignore[no-untyped-call]
        self.stopWriting()  # type: ignore[no-untyped-call]
        lost = Failure(BrokerRefused(_said(error)))
        self._encryption.clock.callLater(0, self.connectionLost, lost)


def _said(error: ssl.SSLError) -> str:
    reason = reason_of(error).rstrip(".")
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _WRONG_HOST:
            return f"shows a certificate of another host: {reason} ({_CHECK})"
        return f"shows a certificate that is not trusted: {reason} (upstream.ssl.truststore.location)"
    if "alert" in reason:
        return f"does not go on with TLS: {reason} (upstream.ssl.keystore.location)"
    return f"speaks no TLS that is understood: {reason} (upstream.security.protocol)"
