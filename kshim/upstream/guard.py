"""Takes kshim's own topic out of requests that change topics, before they are passed on.

A request that names the topic has its name or its id among its bytes. So only requests with these bytes are
decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from kshim.network.dispatch import LIGHT_ELEMENTS, MAX_ELEMENTS, Reply
from kshim.turns.aside import Aside
from kshim.turns.promise import run, settled
from kshim.upstream.asked import Answer, Asked, Decoded, encode, not_understood, refusal
from kshim.upstream.own_topic import OwnTopic, Split, joined, split
from kshim.upstream.own_topic import refusal as refused_whole
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, TooManyElements
from schemas.registry import decode_request, decode_response, encode_request

NO_ACKS = 0
PassOn = Callable[[Asked], Answer]


class Guard:
    """Answers for kshim's own topic, and passes on everything else."""

    def __init__(self, own: OwnTopic, aside: Aside) -> None:
        self._own = own
        self._aside = aside

    def before(self, pass_on: PassOn) -> PassOn:
        """Return a function that takes the topic out of a request and passes the rest to `pass_on`."""
        return partial(self._answer, pass_on)

    def _answer(self, pass_on: PassOn, asked: Asked) -> Answer:
        if not self._own.may_be_in(asked.frame):
            return pass_on(asked)
        try:
            decoded = asked.decoded or decode_request(asked.frame, LIGHT_ELEMENTS)
        except TooManyElements:
            asked.turn.is_alone = True
            return run(self._answer_large(pass_on, asked))
        except MalformedMessage as error:
            _not_read(asked, error)
        return self._divide(pass_on, asked, decoded)

    async def _answer_large(self, pass_on: PassOn, asked: Asked) -> Reply:
        try:
            decoded = await self._aside.run(partial(decode_request, asked.frame, MAX_ELEMENTS))
        except Exception as error:
            _not_read(asked, error)
        return await settled(self._divide(pass_on, asked, decoded))

    def _divide(self, pass_on: PassOn, asked: Asked, decoded: Decoded) -> Answer:
        header, request = decoded
        found = split(header.api_key, header.api_version, request, self._own)
        if found is None:
            return pass_on(asked)
        if header.api_key == ApiKey.PRODUCE and request.acks == NO_ACKS:
            raise refusal(asked, f"writes to {self._own.name}, which only kshim does")
        if found.rest is None:
            return encode(header, refused_whole(header.api_key, header.api_version, found.refused))
        return run(self._pass_rest(pass_on, asked, header, found))

    async def _pass_rest(self, pass_on: PassOn, asked: Asked, header: RequestHeader, found: Split) -> Reply:
        rest = asked._replace(frame=encode_request(header, found.rest), decoded=(header, found.rest))
        return _with_refused(asked, header, found.refused, await settled(pass_on(rest)))


def _with_refused(asked: Asked, header: RequestHeader, refused: Sequence[object], reply: Reply) -> Reply:
    assert reply is not None
    api_key, version = header.api_key, header.api_version
    try:
        _, response = decode_response(api_key, version, bytes(reply))
    except MalformedMessage as error:
        raise not_understood(asked, error) from error
    return encode(header, joined(api_key, version, response, refused))


def _not_read(asked: Asked, error: BaseException | None) -> NoReturn:
    raise refusal(asked, f"cannot be read: {error}") from error
