"""The kinds of writes, and the rows that a transaction makes from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from twisted.internet.defer import Deferred

from kshim.storage.chunk import Chunk
from kshim.storage.embedded.environment import Environment, ReadTransaction, WriteTransaction
from kshim.storage.embedded.producers import put_changes
from kshim.storage.embedded.rows import CHUNK_KEY, MAX_OFFSET, OFFSET, PARTITION_KEY, SO_FAR
from kshim.storage.interfaces import Appended
from kshim.storage.producers import NO_CHANGES, Changes

CHUNK_BYTES = 64 * 1024
"""The appends of one transaction to one partition share chunks of up to this size: LMDB stores a value of
more than about 2 KiB in whole pages."""

STEP_SIZES = 32
"""Most chunks whose size one call returns, because finding a size touches a chunk from end to end."""


@dataclass(slots=True, kw_only=True, eq=False)
class Append:
    """Append batches that have their offsets already."""

    frees: ClassVar = False
    """True if the write frees space, or may be needed to free some. Such a write depends on no append: it may
    use the reserve, and goes on when appends fail on a full disk.
    """
    partition_no: int
    last_offset: int
    max_timestamp_so_far: int
    batches: bytearray | memoryview
    changes: Changes
    result: Appended
    settled: Deferred[Appended] = field(default_factory=Deferred)
    seq: int = 0
    """The number of the write in the write-ahead log."""

    @property
    def size(self) -> int:
        return len(self.batches)


@dataclass(slots=True, kw_only=True, eq=False)
class Put:
    """Change metadata; None deletes a key. To delete a topic, or to change its retention, frees space."""

    frees: ClassVar = True
    changes: Mapping[bytes, bytes | None]
    result: None = None
    settled: Deferred[None] = field(default_factory=Deferred)
    seq: int = 0

    @property
    def size(self) -> int:
        return sum(len(key) + len(value or b"") for key, value in self.changes.items())


@dataclass(slots=True, kw_only=True, eq=False)
class Trim:
    """Raise the log start offset of a partition, unless it is higher already."""

    frees: ClassVar = True
    partition_no: int
    log_start_offset: int
    result: None = None
    settled: Deferred[None] = field(default_factory=Deferred)
    seq: int = 0

    @property
    def size(self) -> int:
        return 0


@dataclass(slots=True, kw_only=True, eq=False)
class Forget:
    """Forget producers that have been idle for too long."""

    frees: ClassVar = False
    partition_no: int
    producer_ids: Sequence[int]
    result: None = None
    settled: Deferred[None] = field(default_factory=Deferred)
    seq: int = 0

    @property
    def size(self) -> int:
        return 0

    @property
    def changes(self) -> Changes:
        return Changes(dict.fromkeys(self.producer_ids), ())


@dataclass(slots=True, kw_only=True, eq=False)
class Delete:
    """Delete a partition. Its space is freed by a chore."""

    frees: ClassVar = True
    partition_no: int
    result: None = None
    settled: Deferred[None] = field(default_factory=Deferred)
    seq: int = 0

    @property
    def size(self) -> int:
        return 0


Write = Append | Put | Trim | Forget | Delete


def apply(environment: Environment, transaction: WriteTransaction, writes: Sequence[Write]) -> None:
    """Put all writes into a transaction."""
    appends: dict[int, list[Append]] = {}
    changes: dict[int, list[Changes]] = {}
    for write in writes:
        if isinstance(write, Append):
            appends.setdefault(write.partition_no, []).append(write)
            if write.changes is not NO_CHANGES:
                changes.setdefault(write.partition_no, []).append(write.changes)
        elif isinstance(write, Trim):
            _apply_trim(environment, transaction, write)
        elif isinstance(write, Forget):
            changes.setdefault(write.partition_no, []).append(write.changes)
        elif isinstance(write, Delete):
            transaction.put(PARTITION_KEY.pack(write.partition_no), b"", db=environment.deleted)
        else:
            _apply_changes(environment, transaction, write.changes)
    for partition_no, some in changes.items():
        put_changes(environment, transaction, partition_no, some)
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


def last_chunk_key(transaction: ReadTransaction, partition_no: int) -> bytes | memoryview | None:
    """The key of a partition's last chunk; None if the partition has no chunk."""
    cursor = transaction.cursor()
    found = cursor.set_range(CHUNK_KEY.pack(partition_no, MAX_OFFSET))
    found = cursor.prev() if found else cursor.last()
    return cursor.key() if found and cursor.key()[:4] == PARTITION_KEY.pack(partition_no) else None


def chunk_sizes(transaction: ReadTransaction, partition_no: int, offset: int) -> list[tuple[int, int]]:
    """(last offset, bytes) of at most STEP_SIZES chunks, from the batch that holds `offset` on; none at the
    end.
    """
    found: list[tuple[int, int]] = []
    cursor = transaction.cursor()
    if not cursor.set_range(CHUNK_KEY.pack(partition_no, offset)):
        return found
    for key, value in cursor.iternext():
        found_no, last_offset = CHUNK_KEY.unpack(key)
        if found_no != partition_no or len(found) == STEP_SIZES:
            break
        chunk = Chunk(last_offset, SO_FAR.unpack_from(value)[0], value[SO_FAR.size :])
        found.append((last_offset, chunk.size_from(offset)))
    return found


def log_start_offset(
    environment: Environment, transaction: ReadTransaction | WriteTransaction, partition_no: int
) -> int:
    found = transaction.get(PARTITION_KEY.pack(partition_no), db=environment.starts)
    return 0 if found is None else int.from_bytes(found)


def _apply_trim(environment: Environment, transaction: WriteTransaction, trim: Trim) -> None:
    if trim.log_start_offset > log_start_offset(environment, transaction, trim.partition_no):
        key = PARTITION_KEY.pack(trim.partition_no)
        transaction.put(key, OFFSET.pack(trim.log_start_offset), db=environment.starts)
