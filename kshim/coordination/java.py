"""Details of Java that Kafka's clients can see: the hash of a string, and the order of a hash map."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection
from operator import mul
from typing import TypeVar
from uuid import UUID

K = TypeVar("K")
UTF_16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
UTF_16_BIG_ENDIAN = "utf-16-be"
"""Bytes in this encoding are sorted as Java sorts strings."""
MASK = 0xFFFFFFFF
MASK_64 = 0xFFFFFFFF_FFFFFFFF
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
    first = len(units) % BLOCK
    code: int = sum(map(mul, units[:first], _POWERS[BLOCK - first :])) & MASK
    for start in range(first, len(units), BLOCK):
        code = (code * _BLOCK_POWER + sum(map(mul, units[start : start + BLOCK], _POWERS))) & MASK
    return code


def uuid_hash(value: UUID) -> int:
    """The hash of Kafka's `Uuid`, as an unsigned 32-bit number."""
    both = value.int >> 64 ^ value.int & MASK_64
    return both >> 32 ^ both & MASK


def in_order_of_a_hash_map(keys: Collection[K], code_of: Callable[[K], int]) -> list[K]:
    """`keys` in the order in which a `HashMap` returns them after they were put in one by one.

    code_of: returns a key's hash code, as an unsigned 32-bit number.
    """
    buckets = BUCKETS
    while len(keys) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: K) -> int:
        code = code_of(key)
        return (code ^ code >> 16) % buckets

    return sorted(keys, key=bucket)
