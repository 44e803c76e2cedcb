"""What the connections of one TLS listener have in common, and a client's connection that is encrypted.

A TlsSocket is a ClientSocket whose bytes pass through OpenSSL, in memory. What was received is decrypted to
where the protocol wants it, and only when it wants it. What is to be sent is encrypted piece by piece as the
socket takes it, so that a client that does not read costs the memory of one piece.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, Final, Protocol

from twisted.internet import main

from kshim.configs.principal_rules import mapped, parse_rules
from kshim.configs.tls import TlsSettings
from kshim.network.certificate_names import subject
from kshim.network.client_socket import ClientSocket, Piece, Receiver
from kshim.network.first_bytes import stranger
from kshim.network.handshakes import Handshakes
from kshim.network.tls_context import new_context
from kshim.requests.mistake import Mistake
from kshim.requests.principal import USER, Principal
from kshim.storage.clock import Clock

HANDSHAKE_S = 10.0
"""How long a client may take for its handshake. Clients themselves give up after 10 to 30 s."""
RECEIVE_BYTES = 64 * 1024
SEAL_BYTES = 128 * 1024
"""What is encrypted at once: the more, the fewer calls of the system; and the memory that a client takes."""
MOST_SEALED_BYTES = 4 * SEAL_BYTES
"""TLS itself answers some messages, and a client may send many of those without reading."""
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
"""What OpenSSL's reasons mean."""


class Tls:
    """The certificate, the rules and the handshakes of one listener."""

    def __init__(self, settings: TlsSettings, *, names_clients: bool, handshakes: Handshakes, clock: Clock):
        """names_clients: whether a client's certificate says who it is. Raises WrongTls."""
        self.handshakes = handshakes
        self.clock = clock
        self.scratch = memoryview(bytearray(RECEIVE_BYTES))
        """Where what was received is decrypted, if the protocol has no place for it."""
        self._names_clients = names_clients
        self.use(settings)

    def use(self, settings: TlsSettings) -> None:
        """Read the stores, and use them for further connections. Raises WrongTls; then nothing changes."""
        context, rules = new_context(settings), parse_rules(settings.mapping_rules)
        self.settings, self.context, self._rules = settings, context, rules

    def transport(self, *arguments: Any) -> TlsSocket:
        """A connection that was accepted, as Twisted's Port makes it."""
        return TlsSocket(self, *arguments)

    def principal(self, certificate: bytes | None) -> Principal | None:
        """Who a client with this certificate is; None if that does not say it. Raises ValueError with the
        name of a certificate that no rule is for.
        """
        if certificate is None or not self._names_clients:
            return None
        name = subject(certificate)
        found = mapped(self._rules, name)
        if found is None:
            raise ValueError(name)
        return Principal(USER, found)


class Secured(Receiver, Protocol):
    """What a TlsSocket hands over to."""

    def secured(self, principal: Principal | None) -> None:
        """The handshake is done; principal: who the client is, if its certificate says that."""

    def insecure(self, mistake: Mistake, **details: object) -> None:
        """Close: the handshake failed."""


class TlsSocket(ClientSocket):
    """A client's connection, of which nothing is handed over before its handshake is done."""

    protocol: Secured  # type: ignore[assignment]

    def __init__(self, tls: Tls, *arguments: Any) -> None:
        self._tls = tls
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session: ssl.SSLObject | None = None
        self._is_secure = False
        self._is_due = False  # a step of the handshake is
        self._is_paused = False  # by the protocol
        self._is_ended = False  # by us
        self._has_heard_end = False  # the client's
        self._sealed = memoryview(b"")  # what the socket has not taken yet
        self._sealed_bytes = 0  # of what was to be sent, that are in it
        super().__init__(*arguments)
        self._timer: Any = tls.clock.callLater(HANDSHAKE_S, self._is_late)

    # ---- the handshake

    def _begin(self, start: bytes) -> bool:
        """Whether a client begins as TLS does."""
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

    def _shake_hands(self) -> None:
        self._is_due = False
        if not self.connected or self.disconnecting:
            return
        assert self._session is not None
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            self._send_own()
            if not self._is_paused:
                self.startReading()  # type: ignore[no-untyped-call]
        except ssl.SSLError as error:
            self._fail(error)
        else:
            self._send_own()
            self._end_handshake(self._session)

    def _end_handshake(self, session: ssl.SSLObject) -> None:
        self._timer.cancel()
        try:
            principal = self._tls.principal(session.getpeercert(binary_form=True))
        except ValueError as error:
            self.protocol.insecure(Mistake.NO_RULE, name=str(error))
            return
        self._is_secure = True
        self.protocol.secured(principal)
        if not self._is_paused:
            self.resumeProducing()

    def _fail(self, error: ssl.SSLError) -> None:
        self._send_own()  # the alert
        mistake = _REASONS.get(error.reason or "", Mistake.TLS_FAILED)
        why = getattr(error, "verify_message", "") or (error.reason or str(error)).replace("_", " ").lower()
        self.protocol.insecure(mistake, why=why)

    def _is_late(self) -> None:
        if self._is_paused:  # it waits for its place
            self._timer = self._tls.clock.callLater(HANDSHAKE_S, self._is_late)
        elif not self.disconnecting:
            self.protocol.insecure(Mistake.NO_HANDSHAKE, seconds=HANDSHAKE_S)
        else:
            self.abortConnection()  # type: ignore[no-untyped-call]

    # ---- receiving

    def doRead(self) -> Any:  # noqa: N802
        """Called when something was received. Returns None, or why the client is lost."""
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return main.CONNECTION_LOST
        if not data:
            return main.CONNECTION_DONE
        if self._session is None and not self._begin(data):
            return None
        self._incoming.write(data)
        if self._is_secure:
            return self._open()
        if not self._is_due:
            self._is_due = True
            self.stopReading()  # type: ignore[no-untyped-call]
            self._tls.handshakes.add(str(self.hostname), self._shake_hands)
        return None

    def _arrived(self) -> int:
        assert self._session is not None
        return self._incoming.pending + self._session.pending()

    def _open(self) -> Any:
        """Decrypt what was received, as long as the protocol takes it."""
        protocol, scratch = self.protocol, self._tls.scratch
        try:
            while self._arrived() and not (self._is_paused or self.disconnecting):
                room = protocol.room(self._arrived)
                received = self._read_into(scratch if room is None else room)
                if room is not None:
                    protocol.filled(received)
                elif received:
                    protocol.dataReceived(bytes(scratch[:received]))
                if self._has_heard_end:
                    return main.CONNECTION_DONE
        except ssl.SSLError as error:
            self._fail(error)
            return None
        self._send_own()
        return None

    def _read_into(self, room: memoryview) -> int:
        """Decrypt records, of which many clients send small ones, until the room is full. Returns how many
        bytes there are. Raises SSLError.
        """
        session, incoming, at = self._session, self._incoming, 0
        assert session is not None
        with suppress(ssl.SSLWantReadError):
            while at < len(room) and (incoming.pending or session.pending()):
                received = int(session.read(len(room) - at, room[at:]))
                self._has_heard_end = not received
                if not received:
                    break
                at += received
        return at

    def pauseProducing(self) -> None:
        self._is_paused = True
        super().pauseProducing()  # type: ignore[no-untyped-call]

    def resumeProducing(self) -> None:
        self._is_paused = False
        if self._is_due:
            return
        super().resumeProducing()  # type: ignore[no-untyped-call]
        if self._is_secure and self._arrived():
            self._tls.clock.callLater(0, self._open_rest)

    def _open_rest(self) -> None:
        if self.connected and not self.disconnecting and self._open() is not None:
            self.loseConnection()  # type: ignore[no-untyped-call]

    # ---- sending

    def _send(self) -> BaseException | None:
        """Send what the socket takes of one piece. If it is lost, that is returned."""
        if not self._sealed and self._unsent:
            self._seal()
        if not self._sealed:
            return None
        try:
            sent = self.socket.send(self._sealed)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return main.CONNECTION_LOST
        self._sealed = self._sealed[sent:]
        if not self._sealed:
            self._unsent_bytes -= self._sealed_bytes
            self._sealed_bytes = 0
        return None

    def _seal(self) -> None:
        """Encrypt the next of what is to be sent."""
        assert self._session is not None
        unsent, pieces, left = self._unsent, list[Piece](), SEAL_BYTES
        while unsent and left:
            piece = unsent.popleft()
            if len(piece) > left:
                whole = memoryview(piece)
                piece = whole[:left]
                unsent.appendleft(whole[left:])
            pieces.append(piece)
            left -= len(piece)
        self._session.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        self._sealed_bytes = SEAL_BYTES - left
        self._sealed = memoryview(self._outgoing.read())

    def _send_own(self) -> None:
        """Send what TLS itself has to say."""
        if self._outgoing.pending:
            self._put(self._outgoing.read())

    def _put(self, sealed: bytes) -> None:
        """Send these bytes as they are."""
        self._sealed = memoryview(bytes(self._sealed) + sealed)
        self._sealed_bytes += len(sealed)
        self._unsent_bytes += len(sealed)
        if len(self._sealed) > MOST_SEALED_BYTES:
            self.abortConnection()  # type: ignore[no-untyped-call]
        elif self.connected:
            self.startWriting()  # type: ignore[no-untyped-call]

    def doWrite(self) -> Any:  # noqa: N802
        """Called when the socket has room. Returns None, or why it is lost."""
        lost = super().doWrite()
        if lost is main.CONNECTION_DONE and self._is_secure and not self._is_ended:
            self._end()
            return super().doWrite()
        return lost

    def _end(self) -> None:
        """Say that nothing follows."""
        assert self._session is not None
        self._is_ended = True
        with suppress(ssl.SSLError):  # it wants to read the client's, which may come or not
            self._session.unwrap()
        self._send_own()

    def connectionLost(self, reason: Any) -> None:
        if self._timer.active():
            self._timer.cancel()
        super().connectionLost(reason)
