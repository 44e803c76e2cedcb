"""Requests in every version, with their header; and a consumer's metadata for its group."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

from schemas import compiled
from schemas.consumer_protocol import (
    LATEST,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    decode_topics,
    encode_assignment,
    encode_subscription,
)
from schemas.header import RequestHeader, request_header_version
from schemas.message import MalformedMessage, definition, struct
from schemas.registry import (
    MESSAGES,
    VERSIONS,
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    encode_request,
)
from tests.fuzz.instances import instance
from tests.fuzz.target import Target
from tests.fuzz.wire import has_long_string, plain, read_by_construct

_EACH = 3
"""Seeds of each request and version: the defaults, and others by chance."""


def _seeds(chance: Random) -> Iterable[bytes]:
    for key, versions in VERSIONS.items():
        cls = MESSAGES[key][0]
        for version in versions:
            header = RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id="client")
            yield encode_request(header, cls())
            for _ in range(_EACH - 1):
                yield encode_request(header, instance(cls, version, chance))


def _check(frame: bytes, found: tuple[RequestHeader, Any] | None) -> None:
    expected = _by_construct(frame)
    if found is None:
        assert expected is None, "construct reads what the compiled code refuses"
        with suppress(MalformedMessage):
            header, offset = decode_request_header(frame)
            assert 8 < offset <= len(frame)
            assert header.api_key == int.from_bytes(frame[:2], signed=True)
        return
    assert expected is not None, "construct refuses what the compiled code reads"
    header, request = found
    assert plain(expected) == plain(found)
    if has_long_string(header) or has_long_string(request):
        return
    written = encode_request(header, request)
    again = decode_request(written)
    assert plain(again) == plain(found)
    assert encode_request(*again) == written
    body = struct(type(request), header.api_version).build(request)
    assert written.endswith(body)


def _by_construct(frame: bytes) -> tuple[RequestHeader, Any] | None:
    key, version = int.from_bytes(frame[:2], signed=True), int.from_bytes(frame[2:4], signed=True)
    if len(frame) < 4 or version not in VERSIONS.get(key, ()):
        return None
    cls = MESSAGES[key][0]
    header = read_by_construct(
        RequestHeader, request_header_version(definition(cls).is_flexible(version)), frame
    )
    body = header and read_by_construct(cls, version, frame, header[1])
    return (header[0], body[0]) if header and body else None


REQUESTS = Target("requests", decode_request, (MalformedMessage, UnsupportedVersion), _check, _seeds)


# ---- the consumer protocol: bytes in JoinGroup and SyncGroup


def _consumer_seeds(chance: Random) -> Iterable[bytes]:
    for version in range(LATEST + 1):
        for _ in range(4):
            yield encode_subscription(instance(ConsumerProtocolSubscription, version, chance), version)
            yield encode_assignment(instance(ConsumerProtocolAssignment, version, chance), version)


def _read_subscription(data: bytes) -> Any:
    topics = decode_topics(data)
    return topics, decode_subscription(data)


def _check_subscription(data: bytes, found: Any) -> None:
    with suppress(MalformedMessage):
        assignment = decode_assignment(data)
        if not has_long_string(assignment):
            assert decode_assignment(encode_assignment(assignment)) == assignment
    if found is None:
        return
    topics, subscription = found
    version = min(int.from_bytes(data[:2]), LATEST)
    assert topics == subscription.topics
    assert read_by_construct(ConsumerProtocolSubscription, version, data, 2) == compiled.decoder(
        ConsumerProtocolSubscription, version
    )(data, 2)
    if not has_long_string(subscription):
        assert decode_subscription(encode_subscription(subscription, version)) == subscription


SUBSCRIPTIONS = Target(
    "subscriptions", _read_subscription, (MalformedMessage,), _check_subscription, _consumer_seeds
)
