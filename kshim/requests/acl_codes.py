"""The numbers by which requests about access control lists name kinds of things (KIP-140)."""

from __future__ import annotations

from kshim.requests import Refused

UNKNOWN = 0
"""What a client makes of a number that it does not know; it is not to be sent."""


def require_known(*codes: int) -> None:
    """Apache Kafka takes a request that says UNKNOWN for one that it cannot read. Raises Refused."""
    if UNKNOWN in codes:
        raise Refused("an access control list with a kind of thing that is UNKNOWN")
