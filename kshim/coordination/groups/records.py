"""A record of `__consumer_offsets` as bytes, and back."""

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
    """The key and value of a record. Raises ValueError for one that cannot be written."""
    key, value = record
    return encode_key(key), None if value is None else encode_value(value)


def decode_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    """The record; None for one with another kind of key. Raises MalformedMessage."""
    decoded = decode_key(key)
    return None if isinstance(decoded, UnknownKey) else GroupRecord(decoded, decode_value(decoded, value))
