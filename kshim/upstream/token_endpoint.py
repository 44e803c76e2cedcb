"""Renews kshim's OAuth token in time.

Python's HTTP client asks, on another thread: Twisted's client needs further libraries for https.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from kshim.client.session import LoginFailed
from kshim.client.token_endpoint import Token, fetch_token
from kshim.configs.upstream import LoginSettings
from kshim.configs.values import Secret
from kshim.storage.clock import Timer

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorFromThreads

    from kshim.storage.reactor import Reactor


logger = logging.getLogger(__name__)

RENEWED_AFTER: Final = 0.8
"""The part of a token's lifetime after which it is renewed, as in Kafka's clients."""
AGAIN_S: Final = 10.0


class RenewedToken:
    """The current token."""

    def __init__(
        self,
        settings: LoginSettings,
        reactor: Reactor,
        fetch: Callable[[LoginSettings], Token] | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """fetch: gets a token, on another thread; raises LoginFailed."""
        self._settings = settings
        self._reactor = reactor
        self._fetch = fetch or fetch_token
        self._now_s = now_s
        self._token: Token | None = None
        self._why = "it was not asked for"
        self._renewal: Timer | None = None
        self._is_stopped = False

    def start(self) -> Deferred[None]:
        """Get the first token. Errbacks LoginFailed."""
        return self._ask()

    def stop(self) -> None:
        """Stop renewing the token."""
        self._is_stopped = True
        if self._renewal is not None and self._renewal.active():
            self._renewal.cancel()

    def token(self) -> Secret:
        """Return the token. Raises LoginFailed if there is none that is still valid."""
        if self._token is None or self._now_s() >= self._token.expires_s:
            raise LoginFailed(f"cannot be logged in to: there is no token: {self._why}")
        return self._token.text

    def _ask(self) -> Deferred[None]:
        pool = self._reactor.getThreadPool()
        threads = cast("IReactorFromThreads", self._reactor)
        return deferToThreadPool(threads, pool, self._fetch, self._settings).addCallback(self._take)

    def _take(self, token: Token) -> None:
        self._token = token
        self._ask_after(max(1.0, (token.expires_s - self._now_s()) * RENEWED_AFTER))

    def _ask_after(self, wait_s: float) -> None:
        if not self._is_stopped:
            self._renewal = self._reactor.callLater(wait_s, lambda: self._ask().addErrback(self._not_now))

    def _not_now(self, failure: Failure) -> None:
        failure.trap(LoginFailed)
        self._why = str(failure.value)
        logger.warning("the token for the upstream is not renewed yet: %s", self._why)
        self._ask_after(AGAIN_S)
