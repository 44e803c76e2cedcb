"""The formats of keys and values in each LMDB database. Only this module defines them.

log       (partition_no u32, last_offset u64) -> max timestamp so far i64, record batches
meta      key -> value
producers (partition_no u32, producer_id u64) -> `storage.producers.encode_producer`
aborted   (partition_no u32, last_offset u64) -> producer_id i64, first_offset u64, last_stable_offset u64
starts    partition_no u32 -> log start offset u64, where it is not 0
deleted   partition_no u32 -> empty: the partition is being deleted
compacted partition_no u32 -> the offset up to which it is compacted u64, the number of records below it u64
kshim     "format" -> the version of this format; "reopened" -> how often a failure has made kshim reopen it;
          "applied" -> the number of the last write of the write-ahead log that is in these databases

Numbers are big-endian, so that keys sort like their numbers.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

FORMAT: Final = b"2"
FORMAT_WITHOUT_LOG: Final = b"1"
"""The same databases, without a write-ahead log."""
APPLIED: Final = b"applied"
REOPENED: Final = b"reopened"

PARTITION_KEY: Final = Struct(">I")
CHUNK_KEY: Final = Struct(">IQ")
KEY: Final = Struct(">IQ")
"""A key of `producers` or `aborted`."""
MAX_OFFSET: Final = 2**64 - 1
"""A key with this offset sorts behind all others of its partition."""

SO_FAR: Final = Struct(">q")
"""The beginning of a chunk: the max timestamp of the partition up to the chunk's end."""
OFFSET: Final = Struct(">Q")
ABORTED: Final = Struct(">qQQ")
PROGRESS: Final = Struct(">QQ")
