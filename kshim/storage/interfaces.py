"""What kshim asks of a store: a `Log` of record batches, a `Metadata` map, and a `Journal` over a Log.

Everything is called on the reactor thread and answers at once, or with a Deferred that fires there.
A `partition_no` is a number from 0 to 2**32 - 1 that the cluster hands out and never uses twice; a
partition_no that was never appended to is an empty log.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred

from kshim.storage.producers import Aborted, Producers
from schemas.records.end_txn_marker import EndTxnMarker

__all__ = [
    "NO_PRODUCER",
    "Aborted",
    "Appended",
    "Cleanup",
    "Compaction",
    "DataDirLocked",
    "EpochBoundary",
    "Journal",
    "JournalBatch",
    "Log",
    "Metadata",
    "Offsets",
    "Retention",
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
    """log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset.

    The high watermark is what is durable. Below the last stable offset every transaction has ended.
    """

    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    last_stable_offset: int


class TimestampOffset(NamedTuple):
    """One record's timestamp and offset, and the leader epoch of its batch, as ListOffsets answers them."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class EpochBoundary(NamedTuple):
    """What lies on both sides of the end of a leader epoch.

    epoch: the largest, not above the one asked for, that has records, else -1. next_epoch: the smallest above
    it that has records, else -1. offset: where those begin, else the high watermark.
    """

    epoch: int
    next_epoch: int
    offset: int


class Compaction(NamedTuple):
    """How a partition is compacted, by the topic configs of these names."""

    delete_retention_ms: int = 24 * 60 * 60 * 1000
    min_cleanable_dirty_ratio: float = 0.5


class Retention(NamedTuple):
    """How long records are kept, by the topic configs of these names. -1 is no limit."""

    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    retention_bytes: int = -1


class Cleanup(NamedTuple):
    """What becomes of a partition's old records (cleanup.policy).

    compaction: None unless those that a later one replaces may go. retention: None unless the oldest may go.
    """

    compaction: Compaction | None = None
    retention: Retention | None = None


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

    def read(
        self,
        partition_no: int,
        offset: int,
        max_bytes: int,
        *,
        min_one: bool = True,
        up_to: int | None = None,
    ) -> bytes:
        """Whole batches from the one that holds `offset` up to the high watermark, at most `max_bytes`.

        Or up to offset `up_to`, if that comes first. b"" when there is nothing from `offset` on. With
        `min_one` the first batch is returned even if it alone is larger than `max_bytes`.
        """
        ...

    def offsets(self, partition_no: int) -> Offsets: ...

    def producers(self, partition_no: int) -> Producers:
        """The producers of a partition as of its log end offset; to be looked at, and not to be kept."""
        ...

    def forget_producers(self, silent_since_ms: int) -> None:
        """Forget, in all partitions, who has sent nothing later than that and has no transaction open."""
        ...

    def aborted_transactions(self, partition_no: int, start: int, end: int) -> tuple[Aborted, ...]:
        """The aborted transactions that have records between two offsets, in the order of their markers.

        `end` is at most the high watermark.
        """
        ...

    def offset_for_time(self, partition_no: int, timestamp_ms: int) -> TimestampOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`, or None (ListOffsets by time)."""
        ...

    def max_timestamp(self, partition_no: int) -> TimestampOffset | None:
        """The first record that has the partition's largest timestamp, or None (ListOffsets -3, KIP-734)."""
        ...

    def epoch_boundary(self, partition_no: int, leader_epoch: int) -> EpochBoundary:
        """Where the records of `leader_epoch` and of those before it end (OffsetForLeaderEpoch)."""
        ...

    def sizes(self, partition_no: int, offset: int) -> Sequence[tuple[int, int]]:
        """Of some of the chunks that a partition is stored in: last offset and bytes; none at the end.

        From the one that holds `offset` on, so many that it takes no longer than a request may take.
        """
        ...

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback()` each time the high watermark or the log start offset has moved, when the
        partition is deleted, and when it is woken.

        Until the function returned is called.
        """
        ...

    def wake(self, partition_no: int) -> None:
        """Call who watches a partition: something else than its log has changed, as its leader."""
        ...

    def configure(self, partition_no: int, cleanup: Cleanup) -> None:
        """From now on and until the store is closed, let a partition lose its old records like this.

        Compaction: of each key the last record stays, or for some time a tombstone; no record gets another
        offset, and reads go on with the next one that is there. A store that ends with the process need not
        do it. Retention: see `clean`.
        """
        ...

    def clean(self, now_ms: int) -> None:
        """Look, in steps, which partitions keep more than their retention asks for, and let them lose it.

        The log start offset moves; it never passes the high watermark.
        """
        ...

    def delete_records(self, partition_no: int, offset: int) -> Deferred[int]:
        """Let a log start at `offset`, from 0 to the high watermark, or where it starts if that is later.

        Fires with the log start offset when it is durable; from then on what is below cannot be read, and its
        space is freed in steps. Errbacks StorageError (DeleteRecords, KIP-107).
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


NO_PRODUCER = (-1, -1)
"""In place of a producer's id and epoch, where records are part of no transaction."""


class JournalBatch(NamedTuple):
    """Records of a journal that were appended together; a value of None is a tombstone.

    producer: the id and epoch of the producer whose transaction they are part of.
    """

    records: Sequence[tuple[bytes, bytes | None]]
    producer: tuple[int, int] = NO_PRODUCER


class Journal(Protocol):
    """The records of __consumer_offsets: what shard `shard` has committed is in its partition `shard`."""

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        *,
        producer: tuple[int, int] = NO_PRODUCER,
    ) -> Deferred[None]:
        """Append (key, value) records, as in a `JournalBatch`. Fires when durable; errbacks StorageError."""
        ...

    def end_transaction(self, shard: int, marker: EndTxnMarker) -> Deferred[None]:
        """Append the end of a transaction. Fires when durable; errbacks StorageError."""
        ...

    def load(self, shard: int) -> Iterator[JournalBatch | EndTxnMarker]:
        """Everything of the shard that is durable, oldest first, in bounded memory."""
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
