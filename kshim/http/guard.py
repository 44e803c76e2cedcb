"""Who may ask: knows the token, or comes from this machine and not from a page of somebody else.

Without a token the listener is on the loopback, where any page that a user looks at can send requests, too:

* Its own name may have been made to point at 127.0.0.1 (DNS rebinding): its requests have that name as Host.
* It may send a POST to http://127.0.0.1:PORT: the browser tells its Origin. (It may also send a GET, but the
  browser does not let it read the answer, and a GET changes nothing.)

With a token these requests fail, because the token is kept in a cookie of the listener's own name. That the
cookie is not sent with POSTs from elsewhere (SameSite) is asked of the browser, and the Origin is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from urllib.parse import urlsplit

from kshim.configs.endpoint import names_loopback

OPEN_TO_ALL = frozenset(("/healthz", "/readyz", "/favicon.ico"))
"""Asked for without the token: by what starts and stops servers, and by browsers that show JSON, as that
names no icon.
"""
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    why: str


class Guard:
    """Knows the token, if one is needed."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._cookie = sha256(b"kshim page " + token.encode()).hexdigest()
        self.port = 0
        """Where the listener listens."""

    @property
    def cookie_name(self) -> str:
        """Cookies belong to a host, on which several servers may run."""
        return f"kshim-{self.port}"

    @property
    def cookie(self) -> str:
        """The value of the cookie; the token cannot be found from it."""
        return self._cookie

    def knows(self, token: str) -> bool:
        """Whether this is the token."""
        return bool(self._token) and compare_digest(token.encode(), self._token.encode())

    def refusal(
        self, method: str, path: str, headers: Mapping[str, str], cookies: Mapping[str, str]
    ) -> Refusal | None:
        """Why a request is refused; None if it may be answered. Headers by their names in lower case."""
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
    """Refuse what another site's page has sent; a program sends neither of these headers."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    same = origin is None or origin.partition("://")[2] == headers.get("host", "")
    if same and site in ("same-origin", "none"):
        return None
    return Refusal(403, "a page of another site may not steer this server")
