"""Gets an OAuth token with a client's credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import base64
import json
import ssl
import time
from typing import Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode
from urllib.request import Request, urlopen

from kshim.client.session import LoginFailed
from kshim.configs.tls import WrongTls
from kshim.configs.tls_client import tls_client_settings
from kshim.configs.upstream import TOKEN_URL, LoginSettings
from kshim.configs.values import Secret
from kshim.network.tls_context import new_client_context

ANSWER_S: Final = 5.0
MOST_BYTES: Final = 1024 * 1024
LIFETIME_S: Final = 300.0
"""The lifetime of a token that does not state one."""


class Token(NamedTuple):
    text: Secret
    expires_s: float
    """Seconds since 1970."""


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
