"""The log in LMDB, as the reactor thread sees it: where each partition ends, and what is committed.

A partition's state is loaded when it is first asked for, from the key of its last chunk.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from twisted.internet.defer import Deferred, fail

from kshim.storage import chunk
from kshim.storage.chunk import Chunk, Seek
from kshim.storage.embedded.compaction import Pass, Progress, load_progress
from kshim.storage.embedded.environment import Environment, ReadTransaction
from kshim.storage.embedded.writer import Writer
from kshim.storage.embedded.writes import CHUNK_KEY, PARTITION_KEY, SO_FAR, Append, Write
from kshim.storage.interfaces import Appended, Compaction, Offsets, StorageError, TimestampOffset
from kshim.storage.watchers import Watchers
from schemas.record_batch import NO_TIMESTAMP

MAX_OFFSET = 2**64 - 1
MIN_DIRTY_RECORDS = 5000
"""Fewer are not worth a pass: to load them takes some milliseconds."""


class _Partition:
    """What is queued moves `end` and `max_timestamp`; what is committed moves `high_watermark`.

    `compact_at` is the high watermark from which on enough is dirty for a pass.
    """

    __slots__ = ("compact_at", "end", "high_watermark", "max_timestamp", "progress")

    def __init__(self, end: int, max_timestamp: int) -> None:
        self.end = self.high_watermark = end
        self.max_timestamp = max_timestamp
        self.progress = Progress()
        self.compact_at = MAX_OFFSET


class EmbeddedLog:
    """Implements `kshim.storage.interfaces.Log`, and is the writer's ledger."""

    def __init__(self, environment: Environment, writer: Writer, deleted: Iterable[int]) -> None:
        self._environment = environment
        self._writer = writer
        self._deleted = set(deleted)
        self._partitions: dict[int, _Partition] = {}
        self._watchers = Watchers()
        self._compactions: dict[int, Compaction] = {}
        self._now_ms = 0

    def append(
        self,
        partition_no: int,
        batch: bytes | memoryview,
        *,
        leader_epoch: int = 0,
        now_ms: int,
        log_append_time: bool = False,
    ) -> Deferred[Appended]:
        if partition_no in self._deleted:
            return fail(StorageError(f"partition {partition_no} was deleted"))
        try:
            partition = self._partition(partition_no)
        except StorageError as error:
            return fail(error)
        self._now_ms = now_ms
        stamp_ms = now_ms if log_append_time else None
        placed = chunk.place(batch, partition.end, leader_epoch, stamp_ms)
        result = Appended(partition.end, 0, NO_TIMESTAMP if stamp_ms is None else stamp_ms)
        partition.end = placed.next_offset
        partition.max_timestamp = max(partition.max_timestamp, placed.max_timestamp)
        append = Append(
            partition_no=partition_no,
            last_offset=placed.next_offset - 1,
            max_timestamp_so_far=partition.max_timestamp,
            batches=placed.batches,
            result=result,
        )
        self._writer.submit(append)
        return append.settled

    def read(self, partition_no: int, offset: int, max_bytes: int, *, min_one: bool = True) -> bytes:
        end = self._partition(partition_no).high_watermark
        if not 0 <= offset < end:
            return b""
        with self._environment.read(self._environment.log) as transaction:
            return chunk.read(_chunks(transaction, partition_no, offset, end), offset, max_bytes, min_one)

    def offsets(self, partition_no: int) -> Offsets:
        partition = self._partition(partition_no)
        return Offsets(0, partition.high_watermark, partition.end)

    def offset_for_time(self, partition_no: int, timestamp_ms: int) -> TimestampOffset | None:
        end = self._partition(partition_no).high_watermark
        with self._environment.read(self._environment.log) as transaction:
            return chunk.offset_for_time(_seek(transaction, partition_no, end), 0, end, timestamp_ms)

    def max_timestamp(self, partition_no: int) -> TimestampOffset | None:
        end = self._partition(partition_no).high_watermark
        with self._environment.read(self._environment.log) as transaction:
            return chunk.max_timestamp(_seek(transaction, partition_no, end), 0, end)

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.watch(partition_no, callback)

    def compact(self, partition_no: int, compaction: Compaction) -> None:
        self._compactions[partition_no] = compaction
        if (partition := self._partitions.get(partition_no)) is not None:
            self._load_progress(partition_no, partition)

    def delete(self, partition_no: int) -> None:
        if partition_no not in self._deleted:
            self._deleted.add(partition_no)
            self._partitions[partition_no] = _Partition(0, NO_TIMESTAMP)
            self._writer.delete(partition_no)
            self._watchers.notify((partition_no,))

    # ---------------------------------------------------------------------------------- the writer's ledger

    def committed(self, writes: Sequence[Write]) -> None:
        for write in writes:
            if isinstance(write, Append) and write.partition_no not in self._deleted:
                partition = self._partitions[write.partition_no]
                partition.high_watermark = write.last_offset + 1
                if partition.high_watermark >= partition.compact_at:
                    self._begin_pass(write.partition_no, partition)

    def notify(self, writes: Sequence[Write]) -> None:
        self._watchers.notify({write.partition_no for write in writes if isinstance(write, Append)})

    def failed(self) -> None:
        self._partitions.clear()

    def compacted(self, ended: Pass) -> None:
        partition = self._partitions.get(ended.partition_no)
        if partition is None or ended.partition_no in self._deleted:
            return
        before, partition.progress = partition.progress, load_progress(self._environment, ended.partition_no)
        if partition.progress.end == before.end:  # it failed, or all that is dirty is the newest chunk
            partition.compact_at = partition.high_watermark + MIN_DIRTY_RECORDS
            return
        partition.compact_at = _compact_at(partition.progress, ended.compaction)
        if partition.high_watermark >= partition.compact_at:
            self._begin_pass(ended.partition_no, partition)

    # ----------------------------------------------------------------------------------------- partitions

    def _begin_pass(self, partition_no: int, partition: _Partition) -> None:
        partition.compact_at = MAX_OFFSET
        compaction = self._compactions[partition_no]
        self._writer.compact(Pass(partition_no, partition.high_watermark, compaction, self._now_ms))

    def _partition(self, partition_no: int) -> _Partition:
        partition = self._partitions.get(partition_no)
        if partition is None:
            partition = self._partitions[partition_no] = self._load(partition_no)
            self._load_progress(partition_no, partition)
        return partition

    def _load_progress(self, partition_no: int, partition: _Partition) -> None:
        if partition_no in self._compactions and partition_no not in self._deleted:
            partition.progress = load_progress(self._environment, partition_no)
            partition.compact_at = _compact_at(partition.progress, self._compactions[partition_no])

    def _load(self, partition_no: int) -> _Partition:
        if partition_no in self._deleted:
            return _Partition(0, NO_TIMESTAMP)
        with self._environment.read(self._environment.log) as transaction:
            cursor = transaction.cursor()
            found = cursor.set_range(CHUNK_KEY.pack(partition_no, MAX_OFFSET))
            found = cursor.prev() if found else cursor.last()
            if not found or cursor.key()[:4] != PARTITION_KEY.pack(partition_no):
                return _Partition(0, NO_TIMESTAMP)
            (_, last_offset) = CHUNK_KEY.unpack(cursor.key())
            (max_timestamp,) = SO_FAR.unpack_from(cursor.value())
        return _Partition(last_offset + 1, max_timestamp)


def _compact_at(progress: Progress, compaction: Compaction) -> int:
    """The high watermark at which the share of the records that are dirty is what it may be."""
    ratio = compaction.min_cleanable_dirty_ratio
    if ratio == 1:
        return MAX_OFFSET
    return progress.end + max(MIN_DIRTY_RECORDS, int(progress.records * ratio / (1 - ratio)))


def _seek(transaction: ReadTransaction, partition_no: int, end: int) -> Seek:
    return lambda offset: next(_chunks(transaction, partition_no, offset, end), None)


def _chunks(transaction: ReadTransaction, partition_no: int, offset: int, end: int) -> Iterator[Chunk]:
    """The chunks from the one that holds `offset` on, of those that are below `end`."""
    cursor = transaction.cursor()
    if not cursor.set_range(CHUNK_KEY.pack(partition_no, offset)):
        return
    for key, value in cursor.iternext():
        found_no, last_offset = CHUNK_KEY.unpack(key)
        if found_no != partition_no or last_offset >= end:
            return
        yield Chunk(last_offset, SO_FAR.unpack_from(value)[0], value[SO_FAR.size :])
