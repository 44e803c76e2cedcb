"""Decides who may send requests: with a token, those that know it; without one, only this machine's programs.

Without a token the listener is on the loopback. Any web page that a user opens can send requests to it, too:

* The page's own domain may be made to point at 127.0.0.1 (DNS rebinding). Its requests have that domain as
  their Host, so they are refused.
* The page may send a POST to http://127.0.0.1:PORT. The browser adds the page's Origin, so it is refused. (It
  may also send a GET, but the browser does not let the page read the answer, and a GET changes nothing.)

With a token all these requests fail: the browser keeps a cookie for the listener's host name. The cookie is
SameSite, so browsers do not send it with another site's POSTs; the Origin is compared nevertheless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from urllib.parse import urlsplit

from kshim.configs.endpoint import names_loopback

OPEN_TO_ALL = frozenset(("/healthz", "/readyz", "/favicon.ico"))
"""Paths that need no token: programs that start and stop servers ask for the first two. Browsers ask for the
icon when they show JSON, which cannot name another one.
"""
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    why: str


class Guard:
    """Decides which requests are answered. Without a token it refuses other sites' pages."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._cookie = sha256(b"kshim page " + token.encode()).hexdigest()
        self.port = 0
        """The port of the listener; 0 until it listens."""

    @property
    def cookie_name(self) -> str:
        """The cookie's name. It has the port, as browsers share cookies between all ports of a host."""
        return f"kshim-{self.port}"

    @property
    def cookie(self) -> str:
        """The cookie's value, from which nobody can compute the token."""
        return self._cookie

    def knows(self, token: str) -> bool:
        """True if `token` is the token."""
        return bool(self._token) and compare_digest(token.encode(), self._token.encode())

    def refusal(
        self, method: str, path: str, headers: Mapping[str, str], cookies: Mapping[str, str]
    ) -> Refusal | None:
        """Return why a request is refused, or None. headers: by name in lower case. cookies: by name."""
        if method == "POST" and (refusal := _from_elsewhere(headers)) is not None:
            return refusal
        if path in OPEN_TO_ALL:
            return None
        if not self._token:
            return _rebound(headers.get("host", ""))
        if self._is_known(headers.get("authorization", ""), cookies.get(self.cookie_name, "")):
            return None
        return Refusal(401, "expected the token (http.token): Authorization: Bearer TOKEN, or /?token=TOKEN")

    def _is_known(self, authorization: str, cookie: str) -> bool:
        if authorization[: len(_BEARER)].lower() == _BEARER:
            return self.knows(authorization[len(_BEARER) :].strip())
        return compare_digest(cookie.encode(), self._cookie.encode())


def _rebound(host: str) -> Refusal | None:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if names_loopback(name):
        return None
    return Refusal(403, f"expected 127.0.0.1 or localhost as the host, not {host[:100]!r}; or set http.token")


def _from_elsewhere(headers: Mapping[str, str]) -> Refusal | None:
    """Refuse a request that another site's page has sent. Programs send neither Origin nor Sec-Fetch-Site."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    same = origin is None or origin.partition("://")[2] == headers.get("host", "")
    if same and site in ("same-origin", "none"):
        return None
    return Refusal(403, "a page of another site may not steer this server")
