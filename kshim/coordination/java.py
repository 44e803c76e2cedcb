"""What Apache Kafka leaves to Java, and clients see: the hash of a string, and the order of a hash map."""

from __future__ import annotations

from collections.abc import Collection

BUCKETS = 16
"""Of a `java.util.HashMap`, until it is three quarters full."""


def string_hash(text: str) -> int:
    """`String.hashCode`, which is over UTF-16 units, as an unsigned number of 32 bits."""
    code = 0
    utf16 = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(utf16[::2], utf16[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code


def in_order_of_a_hash_map(keys: Collection[str]) -> list[str]:
    """`keys` as a `HashMap` gives them back that they were put into one by one."""
    buckets = BUCKETS
    while len(keys) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        code = string_hash(key)
        return (code ^ code >> 16) % buckets

    return sorted(keys, key=bucket)
