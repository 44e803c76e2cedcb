"""OAUTHBEARER (RFC 7628): the client shows a token that somebody else has given it."""

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
"""Of a message; real ones have some thousands."""
_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_FIRST = re.compile(
    rf"n,(?:a=(?P<asked>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[!-~ \t\r\n]+\x01)*)\x01",
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_GIVES_UP = b"\x01"

Validate = Callable[[str, int], Login]
"""Takes a token, and the time in milliseconds since 1970. Raises TokenRefused."""


class OAuthBearer:
    """One exchange. A client whose token is refused is told why, and gives up with a token of its own."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refused: tuple[TokenRefused, str] | None = None
        self.user = ""

    def step(self, token: bytes, now_ms: int) -> Answer:
        if self._refused is not None and token == _GIVES_UP:
            refused, told = self._refused
            raise AuthenticationFailed(f"its token is refused: {refused}", told)
        self._refused = None
        asked, bearer = _read(token)
        try:
            login = self._validate(bearer, now_ms)
        except TokenRefused as refused:
            told = refused.as_json()
            self._refused = refused, told
            return Answer(told.encode())
        self.user = login.name
        told = (
            f"Authentication failed: Client requested an authorization id ({asked}) that is different from "
            f"the token's principal name ({login.name})"
        )
        check_authorization_id(asked, login.name, told)
        return Answer(b"", login)


def _read(token: bytes) -> tuple[str, str]:
    """The authorization id that the client asks for, and its bearer token. Raises AuthenticationFailed."""
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
