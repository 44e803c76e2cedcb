"""The codes in requests about access control lists (KIP-140)."""

from __future__ import annotations

from kshim.requests import Refused

UNKNOWN = 0
"""How a client reads a code that it does not know; no request may send it."""


def require_known(*codes: int) -> None:
    """Raise Refused if a code is UNKNOWN: Apache Kafka treats such a request as unreadable."""
    if UNKNOWN in codes:
        raise Refused("an access control list with a code that is UNKNOWN")
