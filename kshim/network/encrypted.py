"""A TLS connection, of a client or to a server: the part that both share.

The bytes pass through OpenSSL in memory. Received bytes are decrypted straight into the protocol's memory,
and only when the protocol wants them. Outgoing bytes are encrypted piece by piece as the socket takes them,
so a peer that does not read costs the memory of one piece. Nothing is handed over before the handshake is
done.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from twisted.internet import main
from twisted.python.failure import Failure

from kshim.network.client_socket import DirectSocket, Piece, why_lost
from kshim.network.handshakes import Handshakes
from kshim.storage.clock import TimerClock

RECEIVE_BYTES: Final = 64 * 1024
SEAL_BYTES: Final = 128 * 1024
"""Bytes encrypted at once: more need fewer system calls, but more memory for each peer."""
MOST_SEALED_BYTES: Final = 4 * SEAL_BYTES
"""Limit of encrypted bytes that wait. TLS itself answers some messages, and a peer may send many without
reading.
"""


class Encryption:
    """The parts that the connections of one listener, or to one upstream, share."""

    def __init__(self, context: ssl.SSLContext, handshakes: Handshakes, clock: TimerClock) -> None:
        self.context = context
        self.handshakes = handshakes
        self.clock = clock
        self.scratch = memoryview(bytearray(RECEIVE_BYTES))
        """Memory in which bytes are decrypted if the protocol has no room for them."""


class EncryptedSocket(DirectSocket):
    """A TLS connection. Subclasses say what is different for a client and for a server."""

    is_encrypted = True

    def __init__(self, encryption: Encryption, *arguments: object) -> None:
        self._encryption = encryption
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session: ssl.SSLObject | None = None
        self._is_secure = False
        self._is_due = False  # a step of the handshake is due
        self._is_paused = False  # by the protocol
        self._is_ended = False  # by us
        self._has_heard_end = False  # the peer has ended the session
        self._sealed = memoryview(b"")  # encrypted bytes that the socket has not taken yet
        self._sealed_bytes = 0  # how many plain bytes they contain
        super().__init__(*arguments)

    # ---- what is different for a client and for a server

    def _begun(self, start: bytes) -> bool:
        """True if there is a session for a peer that begins so. Called with the first bytes, before any
        session.
        """
        raise NotImplementedError

    def _plan(self, step: Callable[[], None]) -> None:
        """Do a step of the handshake when it is its turn."""
        raise NotImplementedError

    def _secured(self, session: ssl.SSLObject) -> None:
        """Called when the handshake is done. Unless it sets `_is_secure`, nothing is handed over."""
        raise NotImplementedError

    def _failed(self, error: ssl.SSLError) -> None:
        """Close, because OpenSSL has found a fault. The alert is sent already."""
        raise NotImplementedError

    def connectionLost(self, reason: Failure) -> None:
        """Free OpenSSL's memory now, some 50 KB: this object lives until the collector finds it."""
        super().connectionLost(reason)
        self._session = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    # ---- the handshake

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
                self.startReading()
        except ssl.SSLError as error:
            self._fail(error)
        else:
            self._send_own()
            self._secured(self._session)
            if self._is_secure and not self._is_paused:
                self.resumeProducing()

    def _fail(self, error: ssl.SSLError) -> None:
        self._send_own()  # the alert
        self._failed(error)

    # ---- receiving

    def doRead(self) -> Any:  # noqa: N802
        """Receive, and decrypt what the protocol takes. Return None, or why the peer is lost."""
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            return why_lost(error)
        if not data:
            return main.CONNECTION_DONE
        if self._session is None and not self._begun(data):
            return None
        self._incoming.write(data)
        if self._is_secure:
            return self._open()
        if not self._is_due:
            self._is_due = True
            self.stopReading()
            self._plan(self._shake_hands)
        return None

    def _arrived(self) -> int:
        assert self._session is not None
        return self._incoming.pending + self._session.pending()

    def _open(self) -> Any:
        """Decrypt what was received, as long as the protocol takes it."""
        scratch = self._encryption.scratch
        try:
            while self._arrived() and not (self._is_paused or self.disconnecting):
                protocol = self.protocol
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
        """Decrypt records until the room is full, as many clients send small ones. Return the number of
        bytes. Raises SSLError.
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
        super().pauseProducing()

    def resumeProducing(self) -> None:
        self._is_paused = False
        if self._is_due:
            return
        super().resumeProducing()
        if self._is_secure and self._arrived():
            self._encryption.clock.callLater(0, self._open_rest)

    def _open_rest(self) -> None:
        if self.connected and not self.disconnecting and self._open() is not None:
            self.loseConnection()

    # ---- sending

    def _send(self) -> BaseException | None:
        """Send what the socket takes of one piece. Return why it is lost, if it is."""
        try:
            if not self._sealed and self._unsent:
                self._seal()
        except ssl.SSLError:  # the peer has ended the session
            return main.CONNECTION_LOST
        if not self._sealed:
            return None
        try:
            sent = self.socket.send(self._sealed)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            return why_lost(error)
        self._sealed = self._sealed[sent:]
        if not self._sealed:
            self._unsent_bytes -= self._sealed_bytes
            self._sealed_bytes = 0
        return None

    def _seal(self) -> None:
        """Encrypt the next piece of what has to be sent."""
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
        """Send the messages of TLS itself."""
        if self._outgoing.pending:
            self._put(self._outgoing.read())

    def _put(self, sealed: bytes) -> None:
        """Send these bytes without encrypting them."""
        self._sealed = memoryview(bytes(self._sealed) + sealed)
        self._sealed_bytes += len(sealed)
        self._unsent_bytes += len(sealed)
        if len(self._sealed) > MOST_SEALED_BYTES:
            self.abortConnection()
        elif self.connected:
            self.startWriting()

    def doWrite(self) -> Any:  # noqa: N802
        """Send what has waited for room. Return None, or why the peer is lost."""
        lost = super().doWrite()
        if lost is main.CONNECTION_DONE and self._is_secure and not self._is_ended:
            self._end()
            return super().doWrite()
        return lost

    def _end(self) -> None:
        """End the TLS session: nothing follows."""
        assert self._session is not None
        self._is_ended = True
        with suppress(ssl.SSLError):  # OpenSSL waits for the peer's end, which may never come
            self._session.unwrap()
        self._send_own()
