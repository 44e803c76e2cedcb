"""Key and value of the claims in __kshim_groups, which say which process leads a shard.

Several kshim in front of a Kafka cluster keep their groups in that topic. Its other records are like those of
__consumer_offsets. A claim's key is an int16 with a kind of record that Kafka does not use. It has no fields,
so compaction keeps the newest claim of a shard.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from schemas import compiled
from schemas.message import MalformedMessage, field, message
from schemas.primitives import boolean, int32, string, uuid

KEY: Final = (0x4B53).to_bytes(2)
"""The kind of record, "KS": all claims of a shard have this key."""
_VERSION: Final = 0


@message(versions=range(1), flexible=0)
class ShardClaim:
    """The record with which a process claims a shard, goes on to lead it, or releases it."""

    claim_id: UUID = field(uuid)
    """An id that no other claim of any process has."""
    host: str = field(string)
    """The host at which clients reach the process that claims the shard."""
    port: int = field(int32)
    lease_ms: int = field(int32)
    """How long the process may answer requests after its last proof that it still leads."""
    is_released: bool = field(boolean, default=False)
    """True if the process has answered its last request and leads the shard no more."""


def encode_claim(claim: ShardClaim) -> bytes:
    encode = compiled.encoder(ShardClaim, _VERSION)
    data: bytes = encode(claim, _VERSION.to_bytes(2))
    return data


def decode_claim(value: bytes) -> ShardClaim:
    """Decode the value of a record with `KEY`. Raises MalformedMessage."""
    version = int.from_bytes(value[:2]) if len(value) >= 2 else -1
    if version != _VERSION:
        raise MalformedMessage("an unknown version", api="ShardClaim", version=version)
    claim, end = compiled.decoder(ShardClaim, _VERSION)(value, 2)
    if end != len(value):
        raise compiled.overfull(ShardClaim, _VERSION, value, end)
    found: ShardClaim = claim
    return found
