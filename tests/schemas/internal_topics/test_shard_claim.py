"""The claims in __kshim_groups, as bytes."""

from __future__ import annotations

from uuid import UUID

import pytest

from schemas.internal_topics.group_metadata_log import UnknownKey, decode_key
from schemas.internal_topics.shard_claim import KEY, ShardClaim, decode_claim, encode_claim
from schemas.message import MalformedMessage

CLAIM = ShardClaim(claim_id=UUID(int=7), host="kshim-1", port=9092, lease_ms=500, is_released=True)
DATA = bytes.fromhex("0000 00000000000000000000000000000007 08 6b7368696d2d31 00002384 000001f4 01 00")


def test_claim() -> None:
    assert encode_claim(CLAIM) == DATA
    assert decode_claim(DATA) == CLAIM


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1" + DATA[2:], DATA[:-2], DATA + b"\0"])
def test_what_is_no_claim(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_claim(data)


def test_the_key_is_none_of_kafkas() -> None:
    assert decode_key(KEY) == UnknownKey(0x4B53, b"")
