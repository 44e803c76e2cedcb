"""Enters a broker: does the TLS handshake and the login, then hands the connection to its target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from kshim.client.session import LoginFailed
from kshim.configs.endpoint import Endpoint
from kshim.network.frames import FrameError, Frames, framed
from kshim.storage.clock import Timer, TimerClock
from kshim.upstream.lost import Lost, Target, lost_by
from kshim.upstream.splicing import Reading

MOST_BYTES: Final = 1024 * 1024
"""Limit of an answer during the login."""
ALERT: Final = b"\x15\x03"
"""The first bytes of a TLS alert, which a TLS server sends if it gets plain text."""
SPEAKS_TLS: Final = Lost("speaks TLS at this port (upstream.security.protocol)", is_refused=True)
HANDSHAKE: Final = "the handshake of TLS"
LOGIN: Final = "the login"


class Entering(Reading):
    """Stands in for its target until the connection can be handed over."""

    transport: Any

    def __init__(
        self, target: Target, address: Endpoint, clock: TimerClock, timeout_s: float, *, is_encrypted: bool
    ) -> None:
        self._target = target
        self._address = address
        self._clock = clock
        self._timeout_s = timeout_s
        self._is_encrypted = is_encrypted
        self._frames = Frames(MOST_BYTES)
        self._timer: Timer | None = None
        self._doing = HANDSHAKE if is_encrypted else LOGIN
        self._is_over = False

    def connectionMade(self) -> None:
        self.transport.setTcpNoDelay(True)
        self._timer = self._clock.callLater(self._timeout_s, self._too_late)
        if self._is_encrypted:
            self.transport.shake_hands(self._address.host)
        else:
            self.secured()

    def secured(self) -> None:
        """Begin the login, after the handshake."""
        self._doing = LOGIN
        session = self._target.session
        self._go_on(None if session is None else session.begin)

    def dataReceived(self, data: bytes) -> None:
        session = self._target.session
        assert session is not None
        self._frames.receive(data)
        try:
            frame = self._frames.next_frame()
        except FrameError as error:
            is_alert = error.start.startswith(ALERT)
            self._lose(SPEAKS_TLS if is_alert else Lost("does not speak Kafka's protocol", is_refused=True))
            return
        if frame is not None:
            self._go_on(lambda: session.answer(bytes(frame), self._clock.seconds()))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        lost = lost_by(reason)
        if not lost.is_refused:
            lost = Lost(f"{lost.why} during {self._doing}: is upstream.security.protocol right?")
        self._lose(lost)

    # ---- inside

    def _go_on(self, next_request: Callable[[], bytes | None] | None) -> None:
        """Send the login's next request. Hand the connection over if there is none."""
        try:
            request = None if next_request is None else next_request()
        except LoginFailed as failed:
            self._lose(Lost(str(failed), is_refused=True))
            return
        if request is None:
            self._hand_over()
        else:
            self.transport.writeSequence(framed(request))

    def _hand_over(self) -> None:
        self._end()
        self.transport.protocol = self._target
        self._target.makeConnection(self.transport)

    def _too_late(self) -> None:
        self._lose(Lost(f"has not come to the end of {self._doing} within {self._timeout_s:g} s"))

    def _lose(self, lost: Lost) -> None:
        if self._is_over:
            return
        self._end()
        self.transport.abortConnection()
        self._target.lose(lost)

    def _end(self) -> None:
        self._is_over = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
