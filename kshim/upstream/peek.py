"""Reads the first bytes of a request that is only forwarded, perhaps before it is whole."""

from __future__ import annotations

import struct
from typing import NamedTuple

from schemas.api_key import ApiKey

Frame = bytes | bytearray | memoryview
"""A request without its size, or its first bytes."""
HEAD_BYTES = 8
"""api_key, api_version, correlation_id: the part that all versions of the header share."""
LARGE_BYTES = 64 * 1024
"""A Produce of this size or more may go on in parts."""
FIRST_PRODUCE_BY_ID = 13
"""From this version on, a Produce names topics by their ids."""
_head_at = struct.Struct(">hhi").unpack_from
_int16_at = struct.Struct(">h").unpack_from
_acks_and_topics_at = struct.Struct(">hii").unpack_from
_ACKS_AND_TOPICS_BYTES = 10
_ACKS_AND_TIMEOUT_BYTES = 6
_ID_BYTES = 16
_FIRST_FLEXIBLE_PRODUCE = 9
_MOST_VARINT_BYTES = 5
_MOST_VARINT = 2**31 - 1


class Head(NamedTuple):
    """The fields with which every request begins."""

    api_key: int
    api_version: int
    correlation_id: int


def head(frame: Frame) -> Head:
    """Read the head of a request; `frame` has at least HEAD_BYTES."""
    return Head._make(_head_at(frame))


def client_id(frame: Frame) -> str:
    """Return the client id, as far as it can be read. It is at the same place in all versions."""
    length = int.from_bytes(frame[8:10], signed=True)
    return bytes(frame[10 : 10 + max(0, length)]).decode(errors="replace")


class ProduceHead(NamedTuple):
    """The fields of a Produce up to its first topic."""

    acks: int
    topics: int
    """The number of topics."""
    topic: bytes
    """The first topic's name or, from v13 on, its id; empty if there is none."""


def produce_head(frame: Frame, api_version: int) -> ProduceHead | None:
    """Read the first fields of a Produce, as the broker will; None if they cannot be read."""
    try:
        if api_version < _FIRST_FLEXIBLE_PRODUCE:
            return _plain_head(frame)
        return _flexible_head(frame, api_version >= FIRST_PRODUCE_BY_ID)
    except (IndexError, struct.error):
        return None


def large_produce(size: int, start: memoryview) -> bytes | None:
    """Return the topic (name or id) of a Produce of LARGE_BYTES or more to one topic. None for any other
    request, and while the topic cannot be read yet.

    start: the first bytes of the request. A Produce to several topics is not for this: the name of its last
    topic may come after megabytes.
    """
    if size < LARGE_BYTES or len(start) < HEAD_BYTES:
        return None
    api_key, api_version, _ = head(start)
    if api_key != ApiKey.PRODUCE:
        return None
    found = produce_head(start, api_version)
    return None if found is None or found.topics > 1 else found.topic


def _plain_head(frame: Frame) -> ProduceHead:
    at = 10 + max(0, _int16_at(frame, 8)[0])
    at += 2 + max(0, _int16_at(frame, at)[0])
    acks, _, topics = _acks_and_topics_at(frame, at)
    if topics < 1:
        return ProduceHead(acks, 0, b"")
    at += _ACKS_AND_TOPICS_BYTES
    end = at + 2 + max(0, _int16_at(frame, at)[0])
    return ProduceHead(acks, topics, _slice(frame, at + 2, end))


def _flexible_head(frame: Frame, is_by_id: bool) -> ProduceHead:
    length = _int16_at(frame, 8)[0]
    at = 10 + length if length > 0 else 10
    if frame[at] or frame[at + 1]:
        length, at = _varint(frame, _behind_tags(frame, at))
        at += max(0, length - 1)
    else:
        at += 2  # nearly all requests have neither tagged fields nor a transactional id
    (acks,) = _int16_at(frame, at)
    at += _ACKS_AND_TIMEOUT_BYTES
    topics = frame[at]
    topics, at = (topics, at + 1) if topics < 0x80 else _varint(frame, at)
    if topics < 2:
        return ProduceHead(acks, 0, b"")
    if is_by_id:
        return ProduceHead(acks, topics - 1, _slice(frame, at, at + _ID_BYTES))
    length = frame[at]
    length, at = (length, at + 1) if length < 0x80 else _varint(frame, at)
    return ProduceHead(acks, topics - 1, _slice(frame, at, at + length - 1 if length else at))


def _slice(frame: Frame, start: int, end: int) -> bytes:
    if end > len(frame):
        raise IndexError(end)
    return bytes(frame[start:end])


def _behind_tags(frame: Frame, at: int) -> int:
    """Return where the header's tagged fields end. Raises IndexError."""
    count, at = _varint(frame, at)
    for _ in range(count):
        _, at = _varint(frame, at)
        size, at = _varint(frame, at)
        at += size
        if at > len(frame):
            raise IndexError(at)
    return at


def _varint(frame: Frame, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 31 bits; return it and where it ends. Raises IndexError."""
    value = 0
    for place in range(_MOST_VARINT_BYTES):
        byte = frame[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            if value > _MOST_VARINT:
                break
            return value, at + place + 1
    raise IndexError(at)
