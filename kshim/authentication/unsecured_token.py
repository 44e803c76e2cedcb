"""Makes an unsecured token from options of the login module, for servers that accept these (KIP-255)."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Final

from kshim.configs.values import Secret

_PREFIX: Final = "unsecuredLogin"
_LIFETIME_S: Final = 3600


def new_token(options: Mapping[str, Secret], now_s: float) -> Secret:
    """A JSON web token that is valid from now on. Raises ValueError for an option that should be a number.

    Its times have whole milliseconds, as a broker's clock has: the broker refuses a token from the future.
    """
    claims: dict[str, object] = {}
    for name, text in options.items():
        kind, _, claim = name.removeprefix(_PREFIX).partition("Claim_")
        if claim and name.startswith(_PREFIX):
            claims[claim] = _CLAIMS[kind](text)
    lifetime_s = float(options.get(f"{_PREFIX}LifetimeSeconds", str(_LIFETIME_S)))
    issued_s = int(now_s * 1000) / 1000
    claims |= {"iat": issued_s, "exp": issued_s + lifetime_s}
    return Secret(".".join((_part({"alg": "none"}), _part(claims), "")))


_CLAIMS: Final[Mapping[str, Callable[[str], object]]] = {
    "String": str,
    "Number": float,
    "List": lambda text: text[1:].split(text[:1]) if text[1:] else [],
}
"""Parsers of options, by the kind of claim. The first character of a list separates its items."""


def _part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
