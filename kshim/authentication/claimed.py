"""The name that a client claims in its first token, for a server that passes tokens on to another one, which
checks them.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from typing import Final

from kshim.configs.sasl import OAUTHBEARER, PLAIN

MOST_BYTES: Final = 64 * 1024
"""Longer tokens are not looked into."""
_SCRAM_NAME = re.compile(r"n,[^,]*,(?:m=[^,]*,)?n=([^,]+),")
_BEARER = re.compile(r"\x01auth=\w+ +[-_~+/a-zA-Z0-9]*\.([-_a-zA-Z0-9]+)")


def claimed_name(mechanism: str, token: bytes) -> str:
    """Return the user name in a client's first token; empty if there is none that can be read."""
    if len(token) > MOST_BYTES:
        return ""
    return _NAMES.get(mechanism, _of_scram)(token.decode("utf-8", "replace"))


def _of_plain(text: str) -> str:
    parts = text.split("\0")
    return parts[1] if len(parts) == 3 else ""


def _of_scram(text: str) -> str:
    found = _SCRAM_NAME.match(text)
    return found[1].replace("=2C", ",").replace("=3D", "=") if found else ""


def _of_bearer(text: str) -> str:
    """The claim sub of a JSON web token; other tokens do not show whose they are."""
    found = _BEARER.search(text)
    if found is None:
        return ""
    try:
        claims = json.loads(urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4)))
    except (ValueError, RecursionError):
        return ""
    name = claims.get("sub") if isinstance(claims, dict) else None
    return name if isinstance(name, str) else ""


_NAMES: Final[Mapping[str, Callable[[str], str]]] = {PLAIN: _of_plain, OAUTHBEARER: _of_bearer}
