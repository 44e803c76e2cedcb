"""Encrypted connections that this process makes."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Protocol

from twisted.internet import tcp
from twisted.python.failure import Failure

from kshim.network.client_socket import Receiver
from kshim.network.encrypted import EncryptedSocket, Encryption


class Secured(Receiver, Protocol):
    """The protocol above a TlsOutgoingSocket."""

    def secured(self) -> None:
        """Called when the handshake is done."""


class TlsOutgoingSocket(EncryptedSocket, tcp.Client):
    """An encrypted connection to a server. It hands nothing over before the handshake is done."""

    protocol: Secured  # type: ignore[assignment]

    def __init__(
        self, encryption: Encryption, refused: Callable[[ssl.SSLError], Exception], *arguments: object
    ) -> None:
        """refused: returns the reason with which the connection is lost if the handshake fails."""
        self._refused = refused
        super().__init__(encryption, *arguments)

    def shake_hands(self, host: str) -> None:
        """Begin the handshake with a server whose certificate has to name `host`."""
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
        self.stopReading()
        self.stopWriting()
        self._encryption.clock.callLater(0, self.connectionLost, Failure(self._refused(error)))
