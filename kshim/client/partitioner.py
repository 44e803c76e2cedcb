"""Chooses the partition of a key as Kafka's Java client does: by murmur2 over the key's bytes."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_SEED, _M, _R = 0x9747B28C, 0x5BD1E995, 24


def partition_for(key: bytes, partitions: int) -> int:
    """Return a partition's number, from 0 to `partitions` - 1; always the same for the same key."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    """Kafka's `Utils.murmur2`, as an unsigned number."""
    mixed = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> _R) * _M & _MASK
        mixed = mixed * _M & _MASK ^ k
    if rest := data[whole:]:
        mixed = (mixed ^ int.from_bytes(rest, "little")) * _M & _MASK
    mixed = (mixed ^ mixed >> 13) * _M & _MASK
    return mixed ^ mixed >> 15
