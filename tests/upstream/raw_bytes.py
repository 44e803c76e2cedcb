"""Requests of the flexible versions, written byte by byte."""

from __future__ import annotations

from kshim.upstream.raw import written
from schemas.api_key import ApiKey

TAGS = b"\0"
"""No tagged fields."""


def string(text: str) -> bytes:
    """A compact string."""
    return written(len(text.encode())) + text.encode()


def request(api_key: ApiKey, body: bytes, client_id: bytes = b"\0\1c") -> bytes:
    """A request of version 1 with the correlation id 7. client_id: as it is written."""
    return api_key.to_bytes(2) + b"\0\1" + (7).to_bytes(4) + client_id + TAGS + body
