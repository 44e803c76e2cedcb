"""The pending offsets in __kshim_groups, as bytes."""

from __future__ import annotations

import pytest

from schemas.internal_topics import shard_claim
from schemas.internal_topics.group_metadata_log import UnknownKey, decode_key
from schemas.internal_topics.pending_offset import (
    KEY,
    PendingKey,
    PendingValue,
    decode_pending_key,
    decode_pending_value,
    encode_pending_key,
    encode_pending_value,
)
from schemas.message import MalformedMessage


def test_keys_and_values_wrap_those_of_offsets() -> None:
    key = PendingKey(7, 42, b"\0\1key")
    assert encode_pending_key(key) == KEY + bytes(7) + b"\7" + bytes(7) + b"*" + b"\0\1key"
    assert decode_pending_key(encode_pending_key(key)) == key
    value = PendingValue(3, 43, b"\0\4value")
    assert encode_pending_value(value) == b"\0\0\0\3" + bytes(7) + b"+" + b"\0\4value"
    assert decode_pending_value(encode_pending_value(value)) == value


def test_the_kind_is_nobody_elses() -> None:
    assert KEY != shard_claim.KEY
    assert isinstance(decode_key(encode_pending_key(PendingKey(7, 42, b"k"))), UnknownKey)


@pytest.mark.parametrize("size", [0, 2, 18])
def test_a_key_that_is_cut_short(size: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_pending_key((KEY + bytes(16))[:size])


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1" + bytes(8), b"\0\1\0\1" + bytes(8) + b"v"])
def test_a_value_that_is_cut_short_or_unknown(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_pending_value(data)
