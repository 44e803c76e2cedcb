"""What the writer is given: appends and changes of metadata, and how a transaction makes them durable.

log       (partition_no u32, last_offset u64) -> max timestamp so far i64, record batches
meta      key -> value
deleted   partition_no u32 -> nothing: being deleted
compacted partition_no u32 -> the offset up to which it is compacted u64, how many records were left there u64
kshim     "format" -> the version of all this
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred

from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.interfaces import Appended

CHUNK_KEY = struct.Struct(">IQ")
PARTITION_KEY = struct.Struct(">I")
SO_FAR = struct.Struct(">q")

CHUNK_BYTES = 64 * 1024
"""Appends of one commit to one partition share chunks up to this size: LMDB gives values of more than about
2 KiB whole pages, and every value costs the writer two changes of thread."""


@dataclass(slots=True, kw_only=True, eq=False)
class Append:
    """Batches that have their offsets."""

    partition_no: int
    last_offset: int
    max_timestamp_so_far: int
    batches: bytearray
    result: Appended
    settled: Deferred[Appended] = field(default_factory=Deferred)

    @property
    def size(self) -> int:
        return len(self.batches)


@dataclass(slots=True, kw_only=True, eq=False)
class Put:
    """Changes of metadata; None deletes."""

    changes: Mapping[bytes, bytes | None]
    result: None = None
    settled: Deferred[None] = field(default_factory=Deferred)

    @property
    def size(self) -> int:
        return sum(len(key) + len(value or b"") for key, value in self.changes.items())


Write = Append | Put


def apply(environment: Environment, transaction: WriteTransaction, writes: Sequence[Write]) -> None:
    """Put all writes into a transaction."""
    appends: dict[int, list[Append]] = {}
    for write in writes:
        if isinstance(write, Append):
            appends.setdefault(write.partition_no, []).append(write)
        else:
            _apply_changes(environment, transaction, write.changes)
    for of_partition in appends.values():
        first = size = 0
        for index, append in enumerate(of_partition):
            if first < index and size + append.size > CHUNK_BYTES:
                _put_chunk(environment, transaction, of_partition[first:index])
                first, size = index, 0
            size += append.size
        _put_chunk(environment, transaction, of_partition[first:])


def _put_chunk(environment: Environment, transaction: WriteTransaction, appends: Sequence[Append]) -> None:
    last = appends[-1]
    key = CHUNK_KEY.pack(last.partition_no, last.last_offset)
    value = b"".join((SO_FAR.pack(last.max_timestamp_so_far), *(append.batches for append in appends)))
    transaction.put(key, value, db=environment.log)


def _apply_changes(
    environment: Environment, transaction: WriteTransaction, changes: Mapping[bytes, bytes | None]
) -> None:
    for key, value in changes.items():
        if value is None:
            transaction.delete(key, db=environment.meta)
        else:
            transaction.put(key, value, db=environment.meta)
