"""How a row of each LMDB database looks: the one place that knows the formats of keys and values.

log       (partition_no u32, last_offset u64) -> max timestamp so far i64, record batches
meta      key -> value
producers (partition_no u32, producer_id u64) -> `storage.producers.encode_producer`
aborted   (partition_no u32, last_offset u64) -> producer_id i64, first_offset u64, last_stable_offset u64
starts    partition_no u32 -> log start offset u64, where it is not 0
deleted   partition_no u32 -> empty: the partition is being deleted
compacted partition_no u32 -> the offset up to which it is compacted u64, how many records were left there u64
kshim     "format" -> the version of this format; "reopened" -> how often a failed sync has made it begin anew

Numbers are big-endian, so that the order of the keys is that of the numbers.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

FORMAT: Final = b"1"
REOPENED: Final = b"reopened"

PARTITION_KEY: Final = Struct(">I")
CHUNK_KEY: Final = Struct(">IQ")
KEY: Final = Struct(">IQ")
"""Of `producers` and `aborted`."""
MAX_OFFSET: Final = 2**64 - 1
"""In a key: not before any other of its partition."""

SO_FAR: Final = Struct(">q")
"""What a chunk begins with: the max timestamp of the partition up to its end."""
OFFSET: Final = Struct(">Q")
ABORTED: Final = Struct(">qQQ")
PROGRESS: Final = Struct(">QQ")
