"""One request, as the parts that answer it pass it on, and how it is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

from kshim.callers import Client, Refused
from kshim.network.dispatch import MAX_ELEMENTS, Reply
from kshim.turns import Turn
from kshim.turns.promise import Promise
from kshim.upstream import peek
from kshim.upstream.here import Here
from kshim.upstream.relay import Relay
from schemas.api_key import api_title
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, TooManyElements
from schemas.registry import decode_request, encode_reply

Decoded = tuple[RequestHeader, Any]
Answer = Reply | Promise[Reply]


class Asked(NamedTuple):
    """One request."""

    broker: Here
    frame: bytes | bytearray
    client: Client
    relay: Relay
    turn: Turn
    decoded: Decoded | None
    api_key: int
    api_version: int
    correlation_id: int


def decode(asked: Asked) -> Decoded:
    """Decode the request. Raises Refused."""
    try:
        return decode_request(asked.frame, MAX_ELEMENTS)
    except (MalformedMessage, TooManyElements) as error:
        raise refusal(asked, f"cannot be read: {error}") from error


def encode(header: RequestHeader, response: object) -> Reply:
    return encode_reply(header.api_key, header.api_version, header.correlation_id, response)


def refusal(asked: Asked, why: str) -> Refused:
    client_id = peek.client_id(asked.frame)
    api = f"{api_title(asked.api_key)} ({asked.api_key}) v{asked.api_version}"
    line = f"{asked.client.named(client_id)}: {api} {why}"
    return Refused(line, once=(asked.api_key, why), names=client_id)


def not_understood(asked: Asked, error: object) -> Refused:
    return refusal(asked, f"was answered by the upstream with what cannot be read: {error}")
