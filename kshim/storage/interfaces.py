"""The interfaces of a store: a `Log` of record batches, a `Metadata` map, and a `Journal` over a Log.

Everything is called on the reactor thread, and returns its result at once, or a Deferred that fires on that
thread. A `partition_no` is a number from 0 to 2**32 - 1 that the cluster assigns and never uses twice. A
partition_no without appends is an empty log.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred

from kshim.storage.durations import Durations
from kshim.storage.producers import Aborted, Producers
from schemas.records.batch import RecordBatchHeader
from schemas.records.end_txn_marker import EndTxnMarker

__all__ = [
    "NO_PRODUCER",
    "Aborted",
    "Activity",
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
    "PartitionEnds",
    "Retention",
    "Search",
    "Step",
    "StorageError",
    "StorageFull",
    "Store",
    "TimestampOffset",
]


class StorageError(Exception):
    """The store cannot do what it was asked to do. str() is one line fit for a log or a terminal."""


class StorageFull(StorageError):
    """No room: the disk is full, or the store has reached its size limit."""


class StorageDamaged(StorageError):
    """The stored bytes are damaged; reading them again is no use."""


class DataDirLocked(StorageError):
    """Another process has the data directory open."""


class Appended(NamedTuple):
    """The place and time of an append, as Produce answers them."""

    base_offset: int
    log_start_offset: int
    log_append_time_ms: int
    """The timestamp of the records with LogAppendTime, else -1."""


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


StepResult = TimestampOffset | int | None


class Step(NamedTuple):
    """A part of a search. `do()` may be called on any thread."""

    cost_us: int
    """About how long `do()` takes, in microseconds."""
    do: Callable[[], StepResult] = lambda: None


Search = Generator[Step, StepResult, TimestampOffset | None]
"""A generator of steps. The caller sends it the result of each step; it returns the record that was found."""


class EpochBoundary(NamedTuple):
    """The end of a leader epoch's records, and the epochs on both sides."""

    epoch: int
    """The largest epoch with records up to the requested one; -1 if there is none."""
    next_epoch: int
    """The smallest epoch with records above the requested one; -1 if there is none."""
    offset: int
    """The first offset of `next_epoch`; the high watermark if there is no such epoch."""


class Compaction(NamedTuple):
    """The rules of a partition's compaction; the fields are topic configs."""

    delete_retention_ms: int = 24 * 60 * 60 * 1000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0


class Retention(NamedTuple):
    """The limits for old records; the fields are topic configs. -1 is no limit."""

    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    retention_bytes: int = -1


class Cleanup(NamedTuple):
    """The ways in which old records of a partition are removed (cleanup.policy)."""

    compaction: Compaction | None = None
    """None if the partition is not compacted."""
    retention: Retention | None = None
    """None if the partition keeps its oldest records."""


class PartitionEnds(Protocol):
    """Where partitions begin and end."""

    def offsets(self, partition_no: int) -> Offsets: ...


class Log(PartitionEnds, Protocol):
    """Record batches of all partitions, in the order in which they were appended."""

    def append(
        self,
        partition_no: int,
        batch: bytes | memoryview,
        *,
        leader_epoch: int = 0,
        now_ms: int,
        log_append_time: bool = False,
        header: RecordBatchHeader | None = None,
    ) -> Deferred[Appended]:
        """Append one or more whole, validated batches.

        Offsets are assigned before this returns, so appends are ordered by their calls. With
        `log_append_time` every batch is stamped with `now_ms` (message.timestamp.type=LogAppendTime).
        A writable `batch` belongs to the log from now on; any other is copied. header: of the only batch, if
        it is known; then it is not decoded. The Deferred fires when the
        records are durable and below the high watermark. It errbacks StorageError; then no record was stored.
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

        Reading stops at offset `up_to`, if that comes first. Returns b"" if no record follows from `offset`
        on. With `min_one` the first batch is returned even if it alone is larger than `max_bytes`.
        """
        ...

    def producers(self, partition_no: int) -> Producers:
        """The producers of a partition as of its log end offset. Do not store the object: it changes."""
        ...

    def forget_producers(self, silent_since_ms: int) -> None:
        """Forget, in all partitions, producers that have been idle since `silent_since_ms` and have no open
        transaction.
        """
        ...

    def last_aborted_offset(self, partition_no: int) -> int:
        """The offset of the last marker of an aborted transaction; -1 if there is none."""
        ...

    def aborted_transactions(self, partition_no: int, start: int, end: int) -> tuple[Aborted, ...]:
        """The aborted transactions with records between two offsets, in the order of their markers.

        end: at most the high watermark.
        """
        ...

    def offset_for_time(self, partition_no: int, timestamp_ms: int) -> Search:
        """Find the first record whose timestamp is at least `timestamp_ms`, or None (ListOffsets by time)."""
        ...

    def max_timestamp(self, partition_no: int) -> Search:
        """Find the first record with the partition's largest timestamp, or None (ListOffsets -3, KIP-734)."""
        ...

    def epoch_boundary(self, partition_no: int, leader_epoch: int) -> EpochBoundary:
        """Find the end of the records of `leader_epoch` and of all earlier epochs (OffsetForLeaderEpoch)."""
        ...

    def sizes(self, partition_no: int, offset: int) -> Sequence[tuple[int, int]]:
        """(last offset, bytes) of some stored chunks, from the batch that holds `offset` on; none at the end.

        Returns only as many chunks as a request has time for.
        """
        ...

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback()` each time the high watermark or the log start offset has moved, when the
        partition is deleted, and at `wake`.

        The returned function removes the callback.
        """
        ...

    def wake(self, partition_no: int) -> None:
        """Call the watchers of a partition: something other than its log has changed, such as its leader."""
        ...

    def configure(self, partition_no: int, cleanup: Cleanup) -> None:
        """Set how old records of a partition are removed, until the store is closed.

        Compaction keeps the last record of each key, and a tombstone for some time. No record changes its
        offset, and reads skip removed records. A store that ends with the process need not compact. `clean`
        applies the retention.
        """
        ...

    def clean(self, now_ms: int) -> None:
        """Remove, in steps, the records of each partition that exceed its retention.

        This moves the log start offset, never past the high watermark.
        """
        ...

    def delete_records(self, partition_no: int, offset: int) -> Deferred[int]:
        """Raise the log start offset to `offset`; no-op if it is higher already (DeleteRecords, KIP-107).

        offset: from 0 to the high watermark. Fires with the log start offset when it is durable. From then on
        records below it cannot be read, and their space is freed in steps. Errbacks StorageError.
        """
        ...

    def delete(self, partition_no: int) -> None:
        """Delete a partition. At once it is empty and appends to it fail; its space is freed in steps."""
        ...


class Metadata(Protocol):
    """A small durable map for the cluster's state. Reads see only durable values."""

    def get(self, key: bytes) -> bytes | None: ...

    def items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All entries whose key begins with `prefix`, sorted by key, as they are at the call."""
        ...

    def put(self, changes: Mapping[bytes, bytes | None]) -> Deferred[None]:
        """Make all changes or none; None deletes a key. Fires when that is durable; errbacks StorageError."""
        ...


NO_PRODUCER = (-1, -1)
"""The producer id and epoch of records outside a transaction."""


class JournalBatch(NamedTuple):
    """Records of a journal that were appended together."""

    records: Sequence[tuple[bytes, bytes | None]]
    """(key, value) of each record; a value of None is a tombstone."""
    producer: tuple[int, int] = NO_PRODUCER
    """Id and epoch of the producer in whose transaction the records are."""
    skips_unreadable: bool = False
    """True if an unreadable record is skipped, because others may have written it. If False, it is damage."""


class Journal(Protocol):
    """The records of __consumer_offsets. Partition `shard` holds the records of the coordinator's shard
    `shard`.
    """

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        *,
        producer: tuple[int, int] = NO_PRODUCER,
    ) -> Deferred[object]:
        """Append one or more (key, value) records, as in a `JournalBatch`. Fires when they are durable;
        errbacks StorageError.
        """
        ...

    def prove_leadership(self, shard: int) -> Deferred[object]:
        """Fire when it is certain that no other process has appended to the shard before this call; errback
        StorageError if that is not so, or cannot be found out.
        """
        ...

    def end_transaction(self, shard: int, marker: EndTxnMarker) -> Deferred[object]:
        """Append the end of a transaction. Fires when it is durable; errbacks StorageError."""
        ...

    def load(self, shard: int) -> Iterator[JournalBatch | EndTxnMarker]:
        """Read all durable records of the shard, oldest first, in bounded memory.

        Records of neighbouring appends outside a transaction may come as one batch.
        """
        ...


class Activity(NamedTuple):
    """The current work of a store, and the durations of its work so far."""

    queued: int = 0
    """The number of waiting writes."""
    durations: Mapping[str, Durations] = {}
    """Durations by the kind of work: "commit", "sync"."""
    failure: str = ""
    """The reason why writes are refused; empty if they are not refused."""


class Store(Protocol):
    """A place for records and metadata. Open it before use; close it once."""

    @property
    def log(self) -> Log: ...

    @property
    def metadata(self) -> Metadata: ...

    def open(self) -> None:
        """Open the store. Raises StorageError, DataDirLocked."""
        ...

    def activity(self) -> Activity: ...

    def close(self) -> Deferred[None]:
        """Finish the queued writes, and close the store. Fires when it is closed; never errbacks."""
        ...
