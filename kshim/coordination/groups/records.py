"""Encodes and decodes records of `__consumer_offsets`."""

from __future__ import annotations

from kshim.coordination.decision import GroupRecord
from schemas.internal_topics.group_metadata_log import (
    UnknownKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """The key and value of a record. Raises ValueError if it cannot be written."""
    key, value = record
    return encode_key(key), None if value is None else encode_value(value)


def decode_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    """The record; None if its key is of an unknown kind. Raises MalformedMessage."""
    decoded = decode_key(key)
    return None if isinstance(decoded, UnknownKey) else GroupRecord(decoded, decode_value(decoded, value))
