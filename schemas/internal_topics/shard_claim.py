"""Key and value of the claims in __kshim_groups, the topic in which several kshim in front of a Kafka cluster
keep their groups: who leads a shard. The other records of that topic are those of __consumer_offsets.

Like these, the key is an int16 with the kind of the record, of which Kafka has none; it has no fields, so
compaction keeps the newest claim of a shard.
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
    """One process claims a shard, leads it on, or lets go of it."""

    claim_id: UUID = field(uuid)
    """Not that of any other claim, by whomever."""
    host: str = field(string)
    """Where clients reach the process that claims the shard."""
    port: int = field(int32)
    lease_ms: int = field(int32)
    """For how long it may answer after its last proof that it still leads."""
    is_released: bool = field(boolean, default=False)
    """Whether it has answered its last request: it leads the shard no more."""


def encode_claim(claim: ShardClaim) -> bytes:
    encode = compiled.encoder(ShardClaim, _VERSION)
    data: bytes = encode(claim, _VERSION.to_bytes(2))
    return data


def decode_claim(value: bytes) -> ShardClaim:
    """The claim in the value of a record with `KEY`. Raises MalformedMessage."""
    version = int.from_bytes(value[:2]) if len(value) >= 2 else -1
    if version != _VERSION:
        raise MalformedMessage("an unknown version", api="ShardClaim", version=version)
    claim, end = compiled.decoder(ShardClaim, _VERSION)(value, 2)
    if end != len(value):
        raise compiled.overfull(ShardClaim, _VERSION, value, end)
    found: ShardClaim = claim
    return found
