"""Gets kshim's OAuth token with its client credentials (RFC 6749, 4.4), and renews it in time.

Python's HTTP client asks, on another thread: Twisted's client needs further libraries for https.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode
from urllib.request import Request, urlopen

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from kshim.configs.tls import WrongTls
from kshim.configs.tls_client import tls_client_settings
from kshim.configs.upstream import TOKEN_URL, LoginSettings
from kshim.configs.values import Secret
from kshim.network.tls_context import new_client_context
from kshim.storage.clock import Timer
from kshim.upstream.session import LoginFailed

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorFromThreads

    from kshim.storage.reactor import Reactor


logger = logging.getLogger(__name__)

ANSWER_S: Final = 5.0
MOST_BYTES: Final = 1024 * 1024
RENEWED_AFTER: Final = 0.8
"""The part of a token's lifetime after which it is renewed, as in Kafka's clients."""
AGAIN_S: Final = 10.0
LIFETIME_S: Final = 300.0
"""The lifetime of a token that does not state one."""


class Token(NamedTuple):
    text: Secret
    expires_s: float
    """Seconds since 1970."""


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


def fetch_token(settings: LoginSettings) -> Token:
    """Ask the endpoint for a token; blocks until it answers. Raises LoginFailed."""
    credentials = (settings.client_id, settings.client_secret)
    user, password = map(quote_plus, credentials) if settings.url_encodes else credentials
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    form = {"grant_type": "client_credentials"} | ({"scope": settings.scope} if settings.scope else {})
    request = Request(
        settings.token_url,
        urlencode(form).encode(),
        {"Authorization": f"Basic {basic}", "Accept": "application/json"},
    )
    try:
        with urlopen(request, timeout=ANSWER_S, context=_context(settings)) as response:
            return _token(response.read(MOST_BYTES))
    except HTTPError as error:
        error.close()
        raise LoginFailed(f"upstream.{TOKEN_URL}: it answers {error.code} {error.reason}") from None
    except (OSError, WrongTls, ValueError) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise LoginFailed(f"upstream.{TOKEN_URL}: {why}") from None


def _context(settings: LoginSettings) -> ssl.SSLContext | None:
    """Return the TLS context for the endpoint. As in Kafka, the login module's options name whom to trust."""
    if not settings.token_url.startswith("https://"):
        return None
    return new_client_context(tls_client_settings(settings.options.get))


def _token(data: bytes) -> Token:
    """Read the endpoint's answer. Raises ValueError."""
    found = json.loads(data)
    text = found.get("access_token") if isinstance(found, dict) else None
    if not isinstance(text, str) or not text.isprintable() or not text:
        raise ValueError("it answers without an access_token")
    lifetime_s = found.get("expires_in")
    is_number = isinstance(lifetime_s, int | float) and not isinstance(lifetime_s, bool)
    return Token(Secret(text), _expiry(text) or time.time() + (lifetime_s if is_number else LIFETIME_S))


def _expiry(text: str) -> float | None:
    """Return when a JSON web token expires; None if it does not state that."""
    try:
        part = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return float(claims["exp"])
    except (ValueError, LookupError, TypeError):
        return None
