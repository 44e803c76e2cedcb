"""What kshim asks of a store: a `Log` of record batches, a `Metadata` map, and a `Journal` over a Log.

Everything is called on the reactor thread and answers at once, or with a Deferred that fires there.
A `partition_no` is a number from 0 to 2**32 - 1 that the cluster hands out and never uses twice; a
partition_no that was never appended to is an empty log.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred

__all__ = [
    "Appended",
    "Compaction",
    "DataDirLocked",
    "Journal",
    "Log",
    "Metadata",
    "Offsets",
    "StorageError",
    "StorageFull",
    "Store",
    "TimestampOffset",
]


class StorageError(Exception):
    """The store cannot do what was asked. str() is one line fit for a log or a terminal."""


class StorageFull(StorageError):
    """No room: the disk is full, or the store has reached the size it was allowed."""


class DataDirLocked(StorageError):
    """Another process has the data directory open."""


class Appended(NamedTuple):
    """Where an append went, as Produce answers it."""

    base_offset: int
    log_start_offset: int
    log_append_time_ms: int
    """-1 unless the append asked for LogAppendTime."""


class Offsets(NamedTuple):
    """log_start_offset <= high_watermark <= log_end_offset. The high watermark is what is durable."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class TimestampOffset(NamedTuple):
    """One record's timestamp and offset, and the leader epoch of its batch, as ListOffsets answers them."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class Compaction(NamedTuple):
    """How a partition is compacted, by the topic configs of these names."""

    delete_retention_ms: int = 24 * 60 * 60 * 1000
    min_cleanable_dirty_ratio: float = 0.5


class Log(Protocol):
    """Record batches of all partitions, in the order in which they were appended."""

    def append(
        self,
        partition_no: int,
        batch: bytes | memoryview,
        *,
        leader_epoch: int = 0,
        now_ms: int,
        log_append_time: bool = False,
    ) -> Deferred[Appended]:
        """Append one or more whole, validated batches.

        Offsets are assigned before this returns, so appends are ordered by their calls. With
        `log_append_time` every batch is stamped with `now_ms` (message.timestamp.type=LogAppendTime).
        `batch` is copied before this returns. The Deferred fires when the records are durable and below
        the high watermark; it errbacks StorageError, and then nothing of them was kept.
        """
        ...

    def read(self, partition_no: int, offset: int, max_bytes: int, *, min_one: bool = True) -> bytes:
        """Whole batches from the one that holds `offset` up to the high watermark, at most `max_bytes`.

        b"" when there is nothing from `offset` on. With `min_one` the first batch is returned even if it
        alone is larger than `max_bytes`.
        """
        ...

    def offsets(self, partition_no: int) -> Offsets: ...

    def offset_for_time(self, partition_no: int, timestamp_ms: int) -> TimestampOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`, or None (ListOffsets by time)."""
        ...

    def max_timestamp(self, partition_no: int) -> TimestampOffset | None:
        """The first record that has the partition's largest timestamp, or None (ListOffsets -3, KIP-734)."""
        ...

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback()` each time the high watermark has moved, and when the partition is deleted.

        Until the function returned is called.
        """
        ...

    def compact(self, partition_no: int, compaction: Compaction) -> None:
        """From now on and until the store is closed, let a partition lose records that a later one replaces.

        Of each key the last record stays, or for some time a tombstone; no record gets another offset, and
        reads go on with the next one that is there. A store that ends with the process need not do it.
        """
        ...

    def delete(self, partition_no: int) -> None:
        """Forget a partition. It is empty at once and appends to it fail; its space is freed in steps."""
        ...


class Metadata(Protocol):
    """A small durable map for what the cluster must remember. Reads see only what is durable."""

    def get(self, key: bytes) -> bytes | None: ...

    def items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All entries whose key begins with `prefix`, by key; as they were when this was called."""
        ...

    def put(self, changes: Mapping[bytes, bytes | None]) -> Deferred[None]:
        """Make all changes or none; None deletes a key. Fires when durable; errbacks StorageError."""
        ...


class Journal(Protocol):
    """The records of __consumer_offsets: what shard `shard` has committed is in its partition `shard`."""

    def append(
        self, shard: int, records: Sequence[tuple[bytes, bytes | None]], now_ms: int
    ) -> Deferred[None]:
        """Append (key, value) records; None is a tombstone. Fires when durable; errbacks StorageError."""
        ...

    def load(self, shard: int) -> Iterator[tuple[bytes, bytes | None]]:
        """Every durable record of the shard, oldest first, in bounded memory."""
        ...


class Store(Protocol):
    """A place for records and metadata, to be opened before use and closed once."""

    @property
    def log(self) -> Log: ...

    @property
    def metadata(self) -> Metadata: ...

    def open(self) -> None:
        """Take hold of the store. Raises StorageError, DataDirLocked."""
        ...

    def close(self) -> Deferred[None]:
        """Finish what is queued and let go. Fires when done; never errbacks."""
        ...
