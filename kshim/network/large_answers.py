"""Large answers are measured first, then wait for room, and only then are encoded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred

from kshim.answering.views import Answering
from kshim.callers import Client
from kshim.configs.endpoint import Endpoint
from kshim.turns import unread
from schemas.api_key import ApiKey
from schemas.compiled import Size
from schemas.header import RequestHeader
from schemas.message import TooLarge
from schemas.pieces import Pieces
from schemas.registry import body_size, encode_in_pieces, encode_reply

LIGHT = Size(bytes=1024 * 1024, elements=2_000)
"""A larger answer is measured and encoded aside."""
SHORT = Size(bytes=16 * 1024 * 1024, elements=100_000)
"""A larger answer may take a second, so it is encoded on a thread for such answers."""


async def encode_large(
    broker: Answering, client: Client, header: RequestHeader, response: object
) -> bytes | Pieces:
    """Return the encoded reply, once there is room for it.

    Raises TooManyElements, TooManyBytes, NoRoom, and what encode_reply raises.
    """
    api_key, version, correlation_id = header.api_key, header.api_version, header.correlation_id
    if api_key == ApiKey.FETCH:  # Fetch asks for room before it reads records, and takes what there is
        write = partial(encode_reply, api_key, version, correlation_id, response, unread.MAX_ANSWER_ELEMENTS)
        return await broker.aside.run(write, client.address)
    size, run = await _measure(broker, client, version, response)
    await broker.unread.room(client, size.bytes, size.elements)
    try:
        encode = partial(encode_in_pieces, api_key, version, correlation_id, response)
        return encode() if run is None else await run(encode, client.address)
    finally:
        broker.unread.give_back(size.bytes)


async def _measure(
    broker: Answering, client: Client, version: int, response: object
) -> tuple[Size, Callable[[Callable[[], Pieces], Endpoint], Deferred[Pieces]] | None]:
    """Return the size of a response, and the function that runs its encoding aside; None if it is light.

    Raises TooManyElements, TooManyBytes.
    """
    try:
        return body_size(version, response, LIGHT.elements, LIGHT.bytes), None
    except TooLarge:
        pass
    measure = partial(body_size, version, response)
    short, long = broker.aside.run, broker.aside.run_long
    most = Size(bytes=unread.MAX_ANSWER_BYTES, elements=unread.MAX_ANSWER_ELEMENTS)
    least = Size(bytes=min(SHORT.bytes, most.bytes), elements=min(SHORT.elements, most.elements))
    try:
        return await short(partial(measure, least.elements, least.bytes), client.address), short
    except TooLarge:
        return await long(partial(measure, most.elements, most.bytes), client.address), long
