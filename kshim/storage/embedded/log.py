"""The log on the reactor thread: the end of each partition, and its durable part.

A partition's state is loaded at its first use, from LMDB and from the durable writes that LMDB may lack.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from twisted.internet.defer import Deferred, fail

from kshim.storage import chunk, times
from kshim.storage.chunk import Chunk, Seek
from kshim.storage.embedded.chores import Chores
from kshim.storage.embedded.compaction import Pass, Progress, load_progress
from kshim.storage.embedded.environment import Environment, ReadTransaction
from kshim.storage.embedded.expiry import Check, Expired
from kshim.storage.embedded.producers import last_aborted_offset, load_aborted, load_producers
from kshim.storage.embedded.recent import Recent
from kshim.storage.embedded.rows import CHUNK_KEY, MAX_OFFSET, SO_FAR
from kshim.storage.embedded.writer import Writer
from kshim.storage.embedded.writes import (
    STEP_SIZES,
    Append,
    Delete,
    Forget,
    Put,
    Trim,
    Write,
    chunk_sizes,
    last_chunk_key,
    log_start_offset,
)
from kshim.storage.interfaces import (
    Appended,
    Cleanup,
    Compaction,
    EpochBoundary,
    Offsets,
    Retention,
    Search,
    StorageError,
)
from kshim.storage.leader_epochs import epoch_boundary
from kshim.storage.producers import Aborted, Producers, between
from kshim.storage.watchers import Watchers
from schemas.records.batch import NO_TIMESTAMP, RecordBatchHeader

MIN_DIRTY_RECORDS = 5000
"""Fewest uncompacted records for a pass. Loading fewer takes only some milliseconds."""


class _Partition:
    """One partition. Queued appends move `end` and `max_timestamp`; committed ones move `high_watermark`."""

    __slots__ = (
        "compact_at",
        "end",
        "high_watermark",
        "is_compacting",
        "last_aborted_offset",
        "max_timestamp",
        "producers",
        "progress",
        "start",
    )

    def __init__(self, start: int, end: int, max_timestamp: int) -> None:
        self.start = start
        self.end = self.high_watermark = end
        self.max_timestamp = max_timestamp
        self.progress = Progress()  # the result of all passes so far
        self.is_compacting = False
        self.compact_at = MAX_OFFSET  # the high watermark at which the next pass begins
        self.producers = Producers()
        self.last_aborted_offset = -1


class EmbeddedLog:
    """Implements `kshim.storage.interfaces.Log`, and is the writer's ledger."""

    def __init__(self, environment: Environment, writer: Writer, chores: Chores) -> None:
        self._environment = environment
        self._writer = writer
        self._chores = chores
        self._deleted = set(chores.deletion.pending)
        self._partitions: dict[int, _Partition] = {}
        self._recent: dict[int, Recent] = {}
        self._watchers = Watchers()
        self._cleanups: dict[int, Cleanup] = {}
        self._now_ms = 0
        self._silent_since_ms = NO_TIMESTAMP

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
        if partition_no in self._deleted:
            return fail(StorageError(f"partition {partition_no} was deleted"))
        try:
            partition = self._partition(partition_no)
        except StorageError as error:
            return fail(error)
        if (refusal := self._writer.refusal(len(batch))) is not None:
            return fail(refusal)
        self._now_ms = now_ms
        stamp_ms = now_ms if log_append_time else None
        placed = chunk.place(batch, partition.end, leader_epoch, stamp_ms, header)
        result = Appended(partition.end, partition.start, NO_TIMESTAMP if stamp_ms is None else stamp_ms)
        partition.end = placed.next_offset
        partition.max_timestamp = max(partition.max_timestamp, placed.max_timestamp)
        changes = partition.producers.replay(placed.produced)
        if changes.aborted:
            partition.last_aborted_offset = changes.aborted[-1].last_offset
        append = Append(
            partition_no=partition_no,
            last_offset=placed.next_offset - 1,
            max_timestamp_so_far=partition.max_timestamp,
            batches=placed.batches,
            changes=changes,
            result=result,
        )
        self._writer.log(append)
        return append.settled

    def replay(self, writes: Iterable[Write]) -> None:
        """Take over the writes of the write-ahead log that LMDB lacks, before anything else happens."""
        for write in writes:
            if isinstance(write, Delete):
                self._forget(write.partition_no)
            elif not isinstance(write, Put):
                self._remember(write)

    def read(
        self,
        partition_no: int,
        offset: int,
        max_bytes: int,
        *,
        min_one: bool = True,
        up_to: int | None = None,
    ) -> bytes:
        partition = self._partition(partition_no)
        high_watermark = partition.high_watermark
        end = high_watermark if up_to is None else min(up_to, high_watermark)
        if not partition.start <= offset < end:
            return b""
        recent = self._recent.get(partition_no)
        if recent is not None and recent.holds(offset):
            return chunk.read(recent.since(offset), offset, end, max_bytes, min_one)
        with self._environment.read("log") as transaction:
            chunks = _chunks(transaction, partition_no, offset, high_watermark, recent)
            return chunk.read(chunks, offset, end, max_bytes, min_one)

    def offsets(self, partition_no: int) -> Offsets:
        partition = self._partition(partition_no)
        start, high_watermark = partition.start, partition.high_watermark
        last_stable_offset = max(start, partition.producers.last_stable_offset(high_watermark))
        return Offsets(start, high_watermark, partition.end, last_stable_offset)

    def producers(self, partition_no: int) -> Producers:
        return self._partition(partition_no).producers

    def forget_producers(self, silent_since_ms: int) -> None:
        self._silent_since_ms = silent_since_ms
        for partition_no, partition in list(self._partitions.items()):
            self._forget_silent(partition_no, partition.producers)

    def last_aborted_offset(self, partition_no: int) -> int:
        return self._partition(partition_no).last_aborted_offset

    def aborted_transactions(self, partition_no: int, start: int, end: int) -> tuple[Aborted, ...]:
        if start > self._partition(partition_no).last_aborted_offset:
            return ()
        with self._environment.read("aborted") as transaction:
            return between(self._aborted(transaction, partition_no, start), start, end)

    def _aborted(self, transaction: ReadTransaction, partition_no: int, start: int) -> Iterator[Aborted]:
        for aborted in load_aborted(self._environment, transaction, partition_no, start):
            yield aborted
            start = aborted.last_offset + 1
        if (recent := self._recent.get(partition_no)) is not None:
            yield from recent.aborted(start)

    def offset_for_time(self, partition_no: int, timestamp_ms: int) -> Search:
        partition = self._partition(partition_no)
        start, end = partition.start, partition.high_watermark
        return times.offset_for_time(partial(self._copy_of, partition_no, end), start, end, timestamp_ms)

    def max_timestamp(self, partition_no: int) -> Search:
        partition = self._partition(partition_no)
        start, end = partition.start, partition.high_watermark
        return times.max_timestamp(partial(self._copy_of, partition_no, end), start, end)

    def epoch_boundary(self, partition_no: int, leader_epoch: int) -> EpochBoundary:
        partition = self._partition(partition_no)
        start, end = partition.start, partition.high_watermark
        with self._environment.read("log") as transaction:
            recent = self._recent.get(partition_no)
            return epoch_boundary(_seek(transaction, partition_no, end, recent), start, end, leader_epoch)

    def sizes(self, partition_no: int, offset: int) -> Sequence[tuple[int, int]]:
        with self._environment.read("log") as transaction:
            found = chunk_sizes(transaction, partition_no, offset)
        recent = self._recent.get(partition_no)
        if recent is not None and len(found) < STEP_SIZES:
            offset = found[-1][0] + 1 if found else offset
            found += [
                (each.last_offset, each.size_from(offset))
                for each in islice(recent.since(offset), STEP_SIZES)
            ]
        return found

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.watch(partition_no, callback)

    def wake(self, partition_no: int) -> None:
        self._watchers.notify((partition_no,))

    def configure(self, partition_no: int, cleanup: Cleanup) -> None:
        self._cleanups[partition_no] = cleanup
        if (partition := self._partitions.get(partition_no)) is not None:
            self._load_progress(partition_no, partition)

    def clean(self, now_ms: int) -> None:
        self._now_ms = now_ms
        retentions: dict[int, Retention] = {}
        for partition_no, cleanup in self._cleanups.items():
            if cleanup.retention is not None:
                retentions[partition_no] = cleanup.retention
            if cleanup.compaction is not None:
                partition = self._partition(partition_no)
                if cleanup.compaction.min_compaction_lag_ms:  # records may be old enough by now
                    self._load_progress(partition_no, partition)
                self._maybe_begin_pass(partition_no, partition)
        self._writer.order(partial(self._chores.expiry.add, Check(retentions, now_ms)))

    def delete_records(self, partition_no: int, offset: int) -> Deferred[int]:
        if partition_no in self._deleted:
            return fail(StorageError(f"partition {partition_no} was deleted"))
        try:
            assert 0 <= offset <= self._partition(partition_no).high_watermark
        except StorageError as error:
            return fail(error)
        trim = Trim(partition_no=partition_no, log_start_offset=offset)
        self._writer.submit(trim)
        return trim.settled.addCallback(lambda _: self._partition(partition_no).start)

    def delete(self, partition_no: int) -> None:
        if partition_no not in self._deleted:
            self._forget(partition_no)
            delete = Delete(partition_no=partition_no)
            delete.settled.addErrback(lambda _: None)  # its topic is deleted once more at the next start
            self._writer.submit(delete)
            self._watchers.notify((partition_no,))

    def _forget(self, partition_no: int) -> None:
        self._deleted.add(partition_no)
        for known in (self._partitions, self._cleanups, self._recent):
            known.pop(partition_no, None)

    def _copy_of(self, partition_no: int, end: int, offset: int) -> Chunk | None:
        """A copy of the chunk that holds `offset`, which outlives the read transaction; None at the end."""
        recent = self._recent.get(partition_no)
        with self._environment.read("log") as transaction:
            found = _seek(transaction, partition_no, end, recent)(offset)
            return None if found is None else found._replace(batches=bytes(found.batches))

    # ---- the writer's ledger

    def committed(self, writes: Sequence[Write]) -> None:
        for write in writes:
            if isinstance(write, Put | Delete) or write.partition_no in self._deleted:
                continue
            self._remember(write)
            if isinstance(write, Append):
                partition = self._partitions[write.partition_no]
                partition.high_watermark = write.last_offset + 1
                self._maybe_begin_pass(write.partition_no, partition)
            elif isinstance(write, Trim):
                partition = self._partition(write.partition_no)
                partition.start = max(partition.start, write.log_start_offset)

    def _remember(self, write: Append | Trim | Forget) -> None:
        """Keep a durable write until LMDB has it."""
        recent = self._recent.get(write.partition_no)
        if recent is None:
            recent = self._recent[write.partition_no] = Recent()
        if isinstance(write, Append):
            recent.append(write)
        elif isinstance(write, Trim):
            recent.trim(write)
        else:
            recent.forget(write)

    def applied(self, seq: int, partition_nos: Sequence[int]) -> None:
        for partition_no in partition_nos:
            recent = self._recent.get(partition_no)
            if recent is not None and recent.drop(seq):
                del self._recent[partition_no]

    def notify(self, writes: Sequence[Write]) -> None:
        self._watchers.notify({write.partition_no for write in writes if isinstance(write, Append | Trim)})

    def failed(self) -> None:
        self._partitions.clear()

    def take(self, news: object) -> None:
        if isinstance(news, Pass):
            self._compacted(news)
        elif isinstance(news, Expired):
            self._expired(news)

    def _expired(self, found: Expired) -> None:
        cleanup = self._cleanups.get(found.partition_no)
        if cleanup is not None and cleanup.retention is not None:
            trim = Trim(partition_no=found.partition_no, log_start_offset=found.log_start_offset)
            trim.settled.addErrback(lambda _: None)  # the next check finds these records again
            self._writer.submit(trim)

    def _compacted(self, ended: Pass) -> None:
        partition = self._partitions.get(ended.partition_no)
        if partition is None or ended.partition_no in self._deleted:
            return
        partition.is_compacting = False
        before = partition.progress
        self._load_progress(ended.partition_no, partition)
        if partition.progress.end == before.end:  # the pass failed, or only the newest chunk is dirty
            partition.compact_at = max(partition.compact_at, partition.high_watermark + MIN_DIRTY_RECORDS)
        self._maybe_begin_pass(ended.partition_no, partition)

    # ---- partitions

    def _maybe_begin_pass(self, partition_no: int, partition: _Partition) -> None:
        if partition.high_watermark < partition.compact_at or partition.is_compacting:
            return
        compaction = self._compaction(partition_no)
        assert compaction is not None
        partition.is_compacting = True
        stable = partition.producers.last_stable_offset(partition.high_watermark)
        wanted = Pass(partition_no, stable, compaction, self._now_ms)
        self._writer.order(partial(self._chores.compactor.add, wanted))

    def _compaction(self, partition_no: int) -> Compaction | None:
        cleanup = self._cleanups.get(partition_no)
        return None if cleanup is None else cleanup.compaction

    def _partition(self, partition_no: int) -> _Partition:
        partition = self._partitions.get(partition_no)
        if partition is None:
            if partition_no in self._deleted:
                return _Partition(0, 0, NO_TIMESTAMP)
            partition = self._partitions[partition_no] = self._load(partition_no)
            self._forget_silent(partition_no, partition.producers)
            self._load_progress(partition_no, partition)
        return partition

    def _load_progress(self, partition_no: int, partition: _Partition) -> None:
        compaction = self._compaction(partition_no)
        partition.compact_at = MAX_OFFSET
        if compaction is not None:
            partition.progress = load_progress(self._environment, partition_no)
            partition.compact_at = _compact_at(partition, compaction)

    def _load(self, partition_no: int) -> _Partition:
        recent = self._recent.get(partition_no) or Recent()
        with self._environment.read("log") as transaction:
            stored = log_start_offset(self._environment, transaction, partition_no)
            start = max(stored, recent.start)
            key = last_chunk_key(transaction, partition_no)
            if (last := recent.last) is not None:
                partition = _Partition(start, max(start, last.last_offset + 1), last.max_timestamp_so_far)
            elif key is None:
                partition = _Partition(start, start, NO_TIMESTAMP)
            else:
                (_, last_offset) = CHUNK_KEY.unpack(key)
                (max_timestamp,) = SO_FAR.unpack_from(transaction.get(key, b""))
                partition = _Partition(start, max(start, last_offset + 1), max_timestamp)
            partition.producers = load_producers(
                self._environment, transaction, partition_no, recent.changes()
            )
            partition.last_aborted_offset = max(
                last_aborted_offset(self._environment, transaction, partition_no),
                *(aborted.last_offset for aborted in recent.aborted(0)),
                -1,
            )
        return partition

    def _forget_silent(self, partition_no: int, producers: Producers) -> None:
        if silent := producers.forget(self._silent_since_ms):
            forget = Forget(partition_no=partition_no, producer_ids=silent)
            forget.settled.addErrback(lambda _: None)  # after a failure they are loaded and forgotten again
            self._writer.submit(forget)


def _compact_at(partition: _Partition, compaction: Compaction) -> int:
    """The high watermark at which the share of dirty records reaches min.cleanable.dirty.ratio."""
    ratio = compaction.min_cleanable_dirty_ratio
    if not ratio < 1:  # also if it is NaN
        return MAX_OFFSET
    end, records = partition.progress
    if end <= partition.start:
        end, records = partition.start, 0
    return end + max(MIN_DIRTY_RECORDS, int(records * ratio / (1 - ratio)))


def _seek(transaction: ReadTransaction, partition_no: int, end: int, recent: Recent | None) -> Seek:
    return lambda offset: next(_chunks(transaction, partition_no, offset, end, recent), None)


def _chunks(
    transaction: ReadTransaction, partition_no: int, offset: int, end: int, recent: Recent | None
) -> Iterator[Chunk]:
    """The chunks below `end`, from the one that holds `offset` on: those of LMDB, then what it may lack."""
    cursor = transaction.cursor()
    if cursor.set_range(CHUNK_KEY.pack(partition_no, offset)):
        for key, value in cursor.iternext():
            found_no, last_offset = CHUNK_KEY.unpack(key)
            if found_no != partition_no or last_offset >= end:
                break
            yield Chunk(last_offset, SO_FAR.unpack_from(value)[0], value[SO_FAR.size :])
            offset = last_offset + 1
    if recent is not None:
        yield from recent.since(offset)
