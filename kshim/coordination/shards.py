"""Finds the shard of a coordinator that holds a group or a transactional id."""

from __future__ import annotations

from functools import lru_cache

from kshim.coordination.java import string_hash

LONG = 256
"""Names of this many characters count as long. Clients may choose names of 32767 bytes, which take four times
that in memory.
"""


def partition_for(name: str, partitions: int) -> int:
    """The partition of the coordinator's topic that holds `name`: Java's `Math.abs(hashCode()) % partitions`.

    The smallest int32, which has no positive counterpart, counts as 0. A letter costs 0.1 us, so the latest
    answers are kept: 16384 for short names, and 64 for long ones.
    """
    return _for_short(name, partitions) if len(name) < LONG else _for_long(name, partitions)


def _partition_for(name: str, partitions: int) -> int:
    code = string_hash(name)
    signed = code - (1 << 32) if code & 0x80000000 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


_for_short = lru_cache(maxsize=16_384)(_partition_for)
_for_long = lru_cache(maxsize=64)(_partition_for)
