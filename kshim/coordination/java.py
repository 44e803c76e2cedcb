"""Details of Java that Kafka's clients can see: the hash of a string, and the order of a hash map."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection
from operator import mul

UTF_16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
MASK = 0xFFFFFFFF
BLOCK = 256
"""UTF-16 units. Hashing long texts in blocks of this size takes less than half the time."""
_POWERS = [pow(31, exponent, MASK + 1) for exponent in reversed(range(BLOCK))]
_BLOCK_POWER = pow(31, BLOCK, MASK + 1)
BUCKETS = 16
"""A `java.util.HashMap` has this many until it is three quarters full."""


def string_hash(text: str) -> int:
    """Java's `String.hashCode`, computed from UTF-16 units, as an unsigned 32-bit number."""
    units = array("H")
    units.frombytes(text.encode(UTF_16, "surrogatepass"))
    code, first = 0, len(units) % BLOCK
    for unit in units[:first]:
        code = (31 * code + unit) & MASK
    for start in range(first, len(units), BLOCK):
        code = (code * _BLOCK_POWER + sum(map(mul, units[start : start + BLOCK], _POWERS))) & MASK
    return code


def in_order_of_a_hash_map(keys: Collection[str]) -> list[str]:
    """`keys` in the order in which a `HashMap` returns them after they were put in one by one."""
    buckets = BUCKETS
    while len(keys) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        code = string_hash(key)
        return (code ^ code >> 16) % buckets

    return sorted(keys, key=bucket)
