"""What Kafka's clients can see of Java: the hash of a string, and the order of a hash map."""

from __future__ import annotations

from collections.abc import Collection

BUCKETS = 16
"""A `java.util.HashMap` has this many until it is three quarters full."""


def string_hash(text: str) -> int:
    """`String.hashCode`, which is over UTF-16 units, as an unsigned number of 32 bits."""
    code = 0
    utf16 = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(utf16[::2], utf16[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
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
