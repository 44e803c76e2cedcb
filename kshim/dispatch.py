"""From a frame to its reply: the table of what is served, and the one way through it.

`API` says what this server can do: the ApiVersions response and `kshim apis` are computed from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.api.api_versions import answering, unsupported
from kshim.context import Broker, Caller, Refused, RequestContext, Signal
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.message import MalformedMessage
from schemas.registry import (
    VERSIONS,
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    encode_response,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """How one API is served.

    function: called with (broker, context, request); returns the response, a Deferred of it, or None where
    the request has no reply. versions: those that are announced.
    """

    function: Callable[[Broker, RequestContext, Any], Any]
    versions: range


# What is announced where it is not exactly what the schemas hold.
ANNOUNCED = {
    # Kafka announces 0 and closes the connection at 0 to 2: librdkafka would switch compression off
    # (KAFKA-18659).
    ApiKey.PRODUCE: range(VERSIONS[ApiKey.PRODUCE].stop),
    # v6 belongs to two-phase commit (KIP-939), which Kafka 4.2 does not announce.
    ApiKey.INIT_PRODUCER_ID: range(6),
}


def _table() -> Iterator[tuple[ApiKey, Served]]:
    for key in ApiKey:
        try:
            module = import_module(f"kshim.api.{key.name.lower()}")
        except ImportError:
            continue
        if key != ApiKey.API_VERSIONS:
            yield key, Served(getattr(module, key.name.lower()), ANNOUNCED.get(key, VERSIONS[key]))


API: dict[int, Served] = dict(_table())
_API_VERSIONS = VERSIONS[ApiKey.API_VERSIONS]
API[ApiKey.API_VERSIONS] = Served(
    answering({ApiKey.API_VERSIONS: _API_VERSIONS} | {key: served.versions for key, served in API.items()}),
    _API_VERSIONS,
)


def answer(
    broker: Broker, frame: bytes | memoryview, caller: Caller, hurry: Signal
) -> bytes | Deferred[bytes | None] | None:
    """The reply to one request: header and body without the size, or None where there is none to send.

    Raises Refused, or fails the Deferred with it, where Kafka closes the connection: an unknown API, an
    unsupported version, a body that is not what its API and version say; and where one of our own functions
    failed.
    """
    try:
        header, request = decode_request(frame)
    except UnsupportedVersion as error:
        return _unsupported(error.header, caller)
    except MalformedMessage as error:
        raise Refused(f"{_sender(frame, caller)}: {error}") from error
    served = API.get(header.api_key)
    if served is None or header.api_version not in served.versions:
        return _unsupported(header, caller)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s", _request(header, caller))
    context = RequestContext(
        header.api_version, header.client_id or "", caller.host, caller.advertised, hurry=hurry
    )
    try:
        response = served.function(broker, context, request)
        if isinstance(response, Deferred):
            return response.addCallback(partial(_encode, header)).addErrback(partial(_fail, header, caller))
        return _encode(header, response)
    except Exception as error:
        raise _failed(header, caller, error) from error


def _encode(header: RequestHeader, response: Any) -> bytes | None:
    if response is None:
        return None
    return encode_response(header.api_key, header.api_version, header.correlation_id, response)


def _unsupported(header: RequestHeader, caller: Caller) -> bytes:
    """Kafka tells only ApiVersions what is supported; any other request it does not serve closes the
    connection.
    """
    served = API.get(header.api_key)
    if header.api_key == ApiKey.API_VERSIONS and served:
        return encode_response(header.api_key, 0, header.correlation_id, unsupported(served.versions))
    if served is None:
        raise Refused(f"{_request(header, caller)}: not served")
    versions = VERSIONS[ApiKey(header.api_key)]
    raise Refused(f"{_request(header, caller)}: served are versions {versions[0]} to {versions[-1]}")


def _fail(header: RequestHeader, caller: Caller, failure: Failure) -> None:
    raise _failed(header, caller, failure.value) from failure.value


def _failed(header: RequestHeader, caller: Caller, error: BaseException | None) -> Refused:
    return Refused(f"{_request(header, caller)}: failed, our fault: {error!r}", logging.ERROR)


def api_name(api_key: int) -> str:
    """An API by Kafka's name, "JoinGroup"; "unknown API" where Kafka has none of that number."""
    try:
        return "".join(word.title() for word in ApiKey(api_key).name.split("_"))
    except ValueError:
        return "unknown API"


def _request(header: RequestHeader, caller: Caller) -> str:
    """The request in the words of the log: who sent what."""
    name = f"{api_name(header.api_key)} ({header.api_key}) v{header.api_version}"
    return f"{caller.address} (client_id {header.client_id!r}): {name}"


def _sender(frame: bytes | memoryview, caller: Caller) -> str:
    """Who sent a frame that cannot be decoded, as far as it says so."""
    try:
        header, _ = decode_request_header(frame)
    except MalformedMessage:
        return str(caller.address)
    return f"{caller.address} (client_id {header.client_id!r})"
