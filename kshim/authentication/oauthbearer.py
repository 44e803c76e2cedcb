"""OAUTHBEARER (RFC 7628): the client sends the bearer token of an authorization server."""

from __future__ import annotations

import re
from collections.abc import Callable

from kshim.authentication.mechanism import (
    Answer,
    AuthenticationFailed,
    Login,
    Unreadable,
    check_authorization_id,
    text_of,
)
from kshim.authentication.tokens import TokenRefused

MOST_BYTES = 64 * 1024
"""Most bytes of a message. Real ones have some thousands."""
_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_FIRST = re.compile(
    rf"n,(?:a=(?P<asked>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[!-~ \t\r\n]+\x01)*)\x01",
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_GIVES_UP = b"\x01"

Validate = Callable[[str, int], Login]
"""Takes a token, and the time in milliseconds since 1970; returns its bearer. Raises TokenRefused."""


class OAuthBearer:
    """One exchange. If the token is refused, the answer says why, and the client ends the exchange with a
    further message.
    """

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refused: tuple[TokenRefused, str] | None = None
        self.user = ""

    def step(self, token: bytes, now_ms: int) -> Answer:
        if self._refused is not None and token == _GIVES_UP:
            refused, message = self._refused
            raise AuthenticationFailed(f"its token is refused: {refused}", message)
        self._refused = None
        asked, bearer = _read(token)
        try:
            login = self._validate(bearer, now_ms)
        except TokenRefused as refused:
            message = refused.as_json()
            self._refused = refused, message
            return Answer(message.encode())
        self.user = login.name
        message = (
            f"Authentication failed: Client requested an authorization id ({asked}) that is different from "
            f"the token's principal name ({login.name})"
        )
        check_authorization_id(asked, login.name, message)
        return Answer(b"", login)


def _read(token: bytes) -> tuple[str, str]:
    """Parse a message. Returns the requested authorization id, or "", and the bearer token. Raises
    AuthenticationFailed, Unreadable.
    """
    found = _FIRST.fullmatch(text_of(token, MOST_BYTES))
    if found is None:
        raise AuthenticationFailed("its message is malformed")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01")[:-1])
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None:
        raise AuthenticationFailed("its message has no bearer token")
    if auth["scheme"].lower() != "bearer":
        raise Unreadable("its token is no bearer token")
    return found["asked"] or "", auth["token"]
