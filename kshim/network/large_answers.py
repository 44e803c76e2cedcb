"""Large answers are measured, wait for room, and only then are they written."""

from __future__ import annotations

from functools import partial
from typing import Any

from kshim.requests import Broker, Client, unread
from schemas.api_key import ApiKey
from schemas.compiled import Size
from schemas.header import RequestHeader
from schemas.message import TooLarge
from schemas.pieces import Pieces
from schemas.registry import body_size, encode_in_pieces, encode_reply

LIGHT = Size(bytes=1024 * 1024, elements=2_000)
"""An answer with more is measured and written aside."""


async def encode_large(
    broker: Broker, client: Client, header: RequestHeader, response: Any
) -> bytes | Pieces:
    """The reply, as soon as there is room for it.

    Raises TooManyElements, TooManyBytes, NoRoom, and what encode_reply does.
    """
    api_key, version, correlation_id = header.api_key, header.api_version, header.correlation_id
    if api_key == ApiKey.FETCH:  # which asks for room before it reads records, and takes what there is
        write = partial(encode_reply, api_key, version, correlation_id, response, unread.MAX_ANSWER_ELEMENTS)
        return await broker.aside.run(write, client.address)
    size, is_light = await _measure(broker, client, version, response)
    await broker.unread.room(client, size.bytes, size.elements)
    try:
        encode = partial(encode_in_pieces, api_key, version, correlation_id, response)
        return encode() if is_light else await broker.aside.run(encode, client.address)
    finally:
        broker.unread.give_back(size.bytes)


async def _measure(broker: Broker, client: Client, version: int, response: Any) -> tuple[Size, bool]:
    """The size of a response, and whether it is light. Raises TooManyElements, TooManyBytes."""
    try:
        return body_size(version, response, LIGHT.elements, LIGHT.bytes), True
    except TooLarge:
        measure = partial(body_size, version, response, unread.MAX_ANSWER_ELEMENTS, unread.MAX_ANSWER_BYTES)
        return await broker.aside.run(measure, client.address), False
