"""Makes record batches that only an attacker would send. It is fast."""

from __future__ import annotations

import struct
import time
from functools import cache

import cramjam
import crc32c

from schemas.records.batch import Compression

_COVERED = struct.Struct(">hiqqqhii")
_BEFORE = struct.Struct(">qiibI")

KEYLESS = b"\x0c\0\0\0\1\1\0"
"""The smallest record: length, attributes, deltas of timestamp and offset, no key, no value, no headers."""
KEYED = b"\x0e\0\0\0\2k\1\0"
"""A record with the key "k"."""


def now_ms() -> int:
    return int(time.time() * 1000)


@cache
def _zstd(record: bytes, count: int) -> bytes:
    return bytes(cramjam.zstd.compress(record * count))


def bomb(count: int, *, ahead_ms: int = 0, max_ahead_ms: int | None = None, record: bytes = KEYLESS) -> bytes:
    """A batch of `count` equal records, compressed to nearly nothing.

    ahead_ms: how far the records' timestamp is ahead of the clock. max_ahead_ms: how far the header's largest
    timestamp is ahead, if it differs.
    """
    base_ms = now_ms() + ahead_ms
    max_ms = base_ms if max_ahead_ms is None else now_ms() + max_ahead_ms
    return batch(_zstd(record, count), count, Compression.ZSTD, base_ms, max_ms)


def batch(payload: bytes, count: int, compression: Compression, base_ms: int, max_ms: int) -> bytes:
    """A batch with this payload, and with these fields in its header."""
    covered = _COVERED.pack(compression, count - 1, base_ms, max_ms, -1, -1, -1, count)
    crc = crc32c.crc32c(payload, crc32c.crc32c(covered))
    size_behind = _BEFORE.size - 12 + len(covered) + len(payload)
    return _BEFORE.pack(0, size_behind, -1, 2, crc) + covered + payload
