"""The claims of JSON web tokens, and the unsecured tokens with which clients are tested.

Anybody can make an unsecured token: it names its bearer, and nobody has signed it. Like Kafka, kshim accepts
such tokens if nothing else is configured for OAUTHBEARER.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from kshim.authentication.mechanism import Login, Unreadable

Claims = Mapping[str, object]


class TokenRefused(Exception):
    """A token is not valid; str() is the reason for the log, without the token."""

    def __init__(self, why: str, *, scope: str | None = None) -> None:
        """scope: the scope that the token lacks; None if it is refused for another reason."""
        super().__init__(why)
        self.scope = scope

    def as_json(self) -> str:
        """The answer to the client (RFC 7628, 3.2.2), as Kafka spells it."""
        if self.scope is None:
            return '{"status":"invalid_token"}'
        return f'{{"status":"insufficient_scope", "scope":"{self.scope}"}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """The requirements for a token's claims."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: Sequence[str] = ()
    audiences: Sequence[str] | None = None
    """A signed token must be for one of these audiences; None for any."""
    issuer: str | None = None
    is_signed: bool = False
    """True if the rules for signed tokens count: such a token must say when it was issued, must have begun
    (nbf), and must be for one of the audiences and of the issuer.
    """
    clock_skew_ms: int = 0

    def login(self, claims: Claims, now_ms: int) -> Login:
        """Check the claims, and return the token's bearer. Raises TokenRefused."""
        expires_s = _number(claims, "exp", is_required=True)
        name = claims.get(self.principal_claim)
        if not isinstance(name, str) or not name.strip():
            raise TokenRefused(f"it has no claim {self.principal_claim} with a name")
        issued_s = _number(claims, "iat", is_required=self.is_signed)
        if issued_s is not None and 1000 * issued_s > now_ms + self.clock_skew_ms:
            raise TokenRefused("it was issued in the future")
        assert expires_s is not None
        if now_ms - self.clock_skew_ms >= 1000 * expires_s:
            raise TokenRefused("it has expired")
        if issued_s is not None and expires_s <= issued_s:
            raise TokenRefused("it expires before it was issued")
        self._check_scope(claims)
        if self.is_signed:
            self._check_signed(claims, now_ms)
        return Login(name, round(1000 * expires_s))

    def _check_signed(self, claims: Claims, now_ms: int) -> None:
        begins_s = _number(claims, "nbf", is_required=False)
        if begins_s is not None and 1000 * begins_s > now_ms + self.clock_skew_ms:
            raise TokenRefused("it is not valid yet")
        if self.audiences is not None and not set(_texts(claims.get("aud"))) & set(self.audiences):
            raise TokenRefused("it is for another audience")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenRefused("it is of another issuer")

    def _check_scope(self, claims: Claims) -> None:
        has = {text.strip() for text in _texts(claims.get(self.scope_claim))}
        missing = [each for each in self.required_scope if each not in has]
        if missing:
            raise TokenRefused(
                f"it lacks the scope {missing[0]!r}", scope=f"[{', '.join(self.required_scope)}]"
            )


def unsecured_claims(token: str) -> Claims:
    """The claims of an unsecured token. Raises TokenRefused, Unreadable."""
    parts = token.split(".")
    if len(parts) != 3 or not all(parts[:2]):
        raise TokenRefused("it has no three parts")
    header, claims = _object(parts[0]), _object(parts[1])
    if "alg" not in header:
        raise Unreadable("its token names no algorithm")
    if header["alg"] != "none":
        raise TokenRefused("its algorithm is not none, but only unsecured tokens are taken")
    if parts[2]:
        raise TokenRefused("it is unsecured, but has a signature")
    return claims


def _object(part: str) -> dict[str, object]:
    text = part.rstrip("=").translate(str.maketrans("-_", "+/"))
    if not re.fullmatch(r"[A-Za-z0-9+/]*", text) or len(text) % 4 == 1:
        raise TokenRefused("it is no Base64")
    try:
        found = json.loads(b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        raise TokenRefused("it is no JSON") from None
    return found if isinstance(found, dict) else {}


def _number(claims: Claims, name: str, *, is_required: bool) -> float | None:
    value = claims.get(name)
    if value is None:
        if is_required:
            raise TokenRefused(f"it has no claim {name}")
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"its claim {name} is no number")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = float("inf")
    if not isfinite(seconds * 1000):
        raise TokenRefused(f"its claim {name} is no time")
    return seconds


def _texts(value: object) -> list[str]:
    """The texts in a claim that is a text or an array of texts."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]
