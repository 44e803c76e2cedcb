"""From a frame to its reply: `API` is the table of the served APIs, and all requests go through `answer`.

An API's function is imported at its first request, as a client uses about a dozen APIs. Importing all of them
would take a tenth of the start-up time.
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from importlib import import_module
from types import CoroutineType
from typing import NoReturn

from kshim.answering.replies import KEYS, Question
from kshim.answering.views import Answering, ApiFunction
from kshim.api.api_versions import ANNOUNCED, unsupported
from kshim.callers import Client, Refused, RequestContext
from kshim.callers.arrivals import is_question
from kshim.callers.mistake import Mistake
from kshim.network.large_answers import encode_large
from kshim.network.metered import metered
from kshim.storage.interfaces import StorageError
from kshim.turns import Turn, unread
from kshim.turns.promise import Promise, run, settled
from kshim.turns.unread import LEAST_ANSWER_BYTES, NoRoom
from schemas.api_key import ApiKey, api_title
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, TooLarge, TooManyBytes, TooManyElements, Value
from schemas.pieces import Pieces
from schemas.registry import (
    VERSIONS,
    StringTooLong,
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    encode_reply,
    encode_response,
)

logger = logging.getLogger(__name__)

LIGHT_ELEMENTS = 2_000
"""A message with more elements is decoded or encoded aside; with so many it takes about 5 ms."""
MAX_ELEMENTS = 100_000
"""Limit of elements in all arrays of a request. One takes up to 400 bytes, for as few as 3 in the frame."""
GSS_API_TOKEN = b"\x60"
"""The first byte of a client that authenticates as before KIP-43. No API has such a number."""

ALONE = frozenset(
    {
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_RECORDS),
        *(ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
        *(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.UPDATE_FEATURES),
        *(ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.ELECT_LEADERS, ApiKey.UNREGISTER_BROKER),
    }
)
"""APIs that change the cluster, one change after the other. A connection may have one of them under way."""

Reply = bytes | Pieces | None


class Served:
    """One API, as it is served."""

    def __init__(self, api_key: ApiKey, versions: range) -> None:
        self._api_key = api_key
        self._name = api_key.name.lower()
        self.versions = versions
        """The announced versions."""

    @cached_property
    def function(self) -> ApiFunction:
        """The API's function, imported at its first request: FETCH is `fetch` in kshim/api/fetch.py.

        Called with (broker, context, request). Returns the response, a promise of it, or None if the request
        has no reply; or it is a coroutine that returns the response or None.
        """
        function: ApiFunction = getattr(import_module(f"kshim.api.{self._name}"), self._name)
        return function

    @cached_property
    def guarded(self) -> ApiFunction:
        """The API's function behind the authorizer, which must exist."""
        from kshim.access.guard import guarded

        return guarded(self._api_key, self.function)


API: dict[int, Served] = {key: Served(key, versions) for key, versions in ANNOUNCED.items()}


def answer(
    broker: Answering,
    frame: bytes | bytearray,
    client: Client,
    turn: Turn,
    decoded: tuple[RequestHeader, Value] | None = None,
) -> Reply | Promise[Reply]:
    """Return the reply to a request, header and body without the size; None if the request has no reply.

    decoded: the frame's header and request, if they were decoded aside. Raises Refused, or the promise fails
    with it, if the request is refused or one of our functions failed.
    """
    # A bytearray holds a large request, and is never hashed.
    question = _question(broker, frame, client) if isinstance(frame, bytes) and frame[:2] in KEYS else None
    if question is not None and (known := broker.replies.find(question, client)) is not None:
        return known
    try:
        header, request = decoded or decode_request(frame, LIGHT_ELEMENTS)
    except (MalformedMessage, TooManyElements) as error:
        return _not_decoded(broker, frame, client, turn, error)
    served = API.get(header.api_key)
    if served is None:
        return _unsupported(header, client)
    if broker.arrivals.asking and not is_question(header.api_key, request):
        broker.arrivals.came(client)
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("%s", _request(header, client))
    function = served.function if broker.authorizer is None else served.guarded
    if broker.quotas.in_force:
        function = metered(function, header.api_key, len(frame))
    version, client_id = header.api_version, header.client_id or ""
    client.client_id = client_id
    context = RequestContext(version, client_id, client.host, client.advertised, turn, broker.node_id, client)
    try:
        response = function(broker, context, request)
        if isinstance(response, CoroutineType):
            response = run(response)
    except Exception as error:
        return _encode(broker, header, client, turn, error)
    if isinstance(response, Promise):
        if header.api_key in ALONE:
            turn.is_alone = True
        return response.then(partial(_encode, broker, header, client, turn))
    reply = _encode(broker, header, client, turn, response)
    if question is not None and context.stays_the_same and isinstance(reply, bytes):
        broker.replies.keep(question, client, reply)
    return reply


def _question(broker: Answering, frame: bytes, client: Client) -> Question | None:
    """Return the key under which a kept reply is found; None if the request has to be answered anew.

    That is so for a client that may be unable to reach the brokers, and while requests are logged or may
    count for a quota.
    """
    if logger.isEnabledFor(logging.DEBUG) or broker.quotas.in_force:
        return None
    if not broker.arrivals.has_arrived(client):
        return None
    authorizer = broker.authorizer
    asker = None if authorizer is None else (client.principal, client.host, authorizer.version)
    return Question(frame, broker.node_id, broker.replies.cluster.version, asker)


def _not_decoded(
    broker: Answering,
    frame: bytes | bytearray,
    client: Client,
    turn: Turn,
    error: MalformedMessage | TooManyElements,
) -> Reply | Promise[Reply]:
    """Have a request of many elements decoded aside and answered. Refuse any other frame."""
    if isinstance(error, MalformedMessage):
        return _refuse_frame(frame, client, error)
    turn.is_alone = True
    return run(_answer_large(broker, frame, client, turn))


async def _answer_large(broker: Answering, frame: bytes | bytearray, client: Client, turn: Turn) -> Reply:
    try:
        decoded = await broker.aside.run(partial(decode_request, frame, MAX_ELEMENTS), client.address)
    except Exception as error:
        return _refuse_frame(frame, client, error)
    return await settled(await broker.rounds.run(partial(answer, broker, frame, client, turn, decoded)))


def _refuse_frame(frame: bytes | bytearray, client: Client, error: Exception) -> bytes:
    """Raise Refused. But ApiVersions in an unsupported version is answered.

    As in Kafka, the connection is closed for an unknown API, an unsupported version, and a body that does not
    match its API and version; here also for more than MAX_ELEMENTS.
    """
    if frame[:1] == GSS_API_TOKEN:
        raise Refused(f"{client.address}: {Mistake.GSSAPI.line()}", once=Mistake.GSSAPI) from error
    if isinstance(error, UnsupportedVersion):
        return _unsupported(error.header, client)
    if isinstance(error, TooManyElements):
        raise Refused(f"{_sender(frame, client)}: a request of more than {MAX_ELEMENTS} elements") from error
    raise Refused(f"{_sender(frame, client)}: {error}") from error


def _encode(
    broker: Answering, header: RequestHeader, client: Client, turn: Turn, response: object
) -> Reply | Promise[Reply]:
    """Encode a response. Raises Refused, also if `response` is the exception that came instead."""
    if response is None:
        return None
    if isinstance(response, Exception):
        raise response if isinstance(response, Refused) else _failed(header, client, response) from response
    api_key, version, correlation_id = header.api_key, header.api_version, header.correlation_id
    try:
        return encode_reply(api_key, version, correlation_id, response, LIGHT_ELEMENTS, LEAST_ANSWER_BYTES)
    except TooLarge:
        turn.is_alone = True
        return run(_encode_large(broker, header, client, response))
    except Exception as error:
        _not_encoded(header, client, error)


async def _encode_large(broker: Answering, header: RequestHeader, client: Client, response: object) -> Reply:
    try:
        return await encode_large(broker, client, header, response)
    except Exception as error:
        _not_encoded(header, client, error)


def _not_encoded(header: RequestHeader, client: Client, error: BaseException | None) -> NoReturn:
    if isinstance(error, TooManyBytes):
        most = unread.MAX_ANSWER_BYTES
        raise Refused(f"{_request(header, client)}: an answer of more than {most} bytes")
    if isinstance(error, NoRoom):
        raise Refused(f"{_request(header, client)}: no memory for its answer, as others do not read theirs")
    if isinstance(error, StringTooLong):
        raise Refused(f"{_request(header, client)}: the answer cannot be written: {error}") from error
    raise _failed(header, client, error) from error


def _unsupported(header: RequestHeader, client: Client) -> bytes:
    """Answer ApiVersions with the supported versions. Raises Refused for any other request, as Kafka closes
    the connection.
    """
    served = API.get(header.api_key)
    if header.api_key == ApiKey.API_VERSIONS and served:
        return encode_response(header.api_key, 0, header.correlation_id, unsupported(served.versions))
    if served is None:
        raise Refused(f"{_request(header, client)}: not served")
    versions = VERSIONS[ApiKey(header.api_key)]
    mistake = Mistake.OLD_VERSION if header.api_version < versions[0] else Mistake.NEW_VERSION
    why = mistake.line(api=_api(header), first=versions[0], last=versions[-1])
    once = mistake, header.api_key
    raise Refused(f"{client.named(header.client_id)}: {why}", once=once, names=header.client_id)


def _failed(header: RequestHeader, client: Client, error: BaseException | None) -> Refused:
    """Return the refusal of a request that raised `error`: its answer's size, the disk's fault, or ours."""
    if isinstance(error, TooManyElements):
        most = unread.MAX_ANSWER_ELEMENTS
        return Refused(f"{_request(header, client)}: an answer of more than {most} elements")
    if isinstance(error, StorageError):
        return Refused(f"{_request(header, client)}: {error}")
    return Refused(f"{_request(header, client)}: failed, our fault: {error!r}", logging.ERROR)


def _request(header: RequestHeader, client: Client) -> str:
    """Return a request's name in the log: its sender, API and version."""
    return f"{client.named(header.client_id)}: {_api(header)}"


def _api(header: RequestHeader) -> str:
    """Return an API's name and version: "Fetch (1) v4"."""
    return f"{api_title(header.api_key)} ({header.api_key}) v{header.api_version}"


def _sender(frame: bytes | bytearray, client: Client) -> str:
    """Return the sender of a frame that cannot be decoded: its address, and its client id if that can be
    read.
    """
    try:
        header, _ = decode_request_header(frame)
    except MalformedMessage:
        return str(client.address)
    return client.named(header.client_id)
