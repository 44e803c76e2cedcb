"""Which shard of a coordinator holds a group or a transactional id."""

from __future__ import annotations

from functools import lru_cache

from kshim.coordination.java import string_hash


@lru_cache(maxsize=16_384)
def partition_for(name: str, partitions: int) -> int:
    """The partition of the coordinator's topic that holds `name`: Java's `Math.abs(hashCode()) % partitions`.

    The smallest int32, which has no positive counterpart, counts as 0.
    """
    code = string_hash(name)
    signed = code - (1 << 32) if code & 0x80000000 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions
