"""A store in memory, for tests and `--data-dir :memory:`. An append counts as durable at once."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter

from twisted.internet.defer import Deferred, fail, succeed

from kshim.storage import chunk, times
from kshim.storage.chunk import Chunk
from kshim.storage.interfaces import (
    Activity,
    Appended,
    Cleanup,
    EpochBoundary,
    Offsets,
    Retention,
    Search,
    StorageError,
)
from kshim.storage.leader_epochs import epoch_boundary
from kshim.storage.producers import Aborted, Producers, between
from kshim.storage.retention import expired, run
from kshim.storage.watchers import Watchers
from schemas.records.batch import NO_TIMESTAMP, RecordBatchHeader

__all__ = ["MemoryLog", "MemoryMetadata", "MemoryStore"]


class MemoryStore:
    """Implements `kshim.storage.interfaces.Store`. Every Deferred has fired when it is returned."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.metadata = MemoryMetadata()

    def open(self) -> None:
        pass

    def activity(self) -> Activity:
        return Activity()

    def close(self) -> Deferred[None]:
        return succeed(None)


class _Partition:
    """The chunks and producers of one partition."""

    __slots__ = ("aborted", "chunks", "last_offsets", "producers", "start")

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.last_offsets: list[int] = []
        self.start = 0
        self.producers = Producers()
        self.aborted: list[Aborted] = []  # in the order of their markers

    @property
    def end(self) -> int:
        return self.last_offsets[-1] + 1 if self.last_offsets else self.start

    def seek(self, offset: int) -> Chunk | None:
        index = bisect_left(self.last_offsets, offset)
        return self.chunks[index] if index < len(self.chunks) else None

    def since(self, offset: int) -> Iterator[Chunk]:
        for index in range(bisect_left(self.last_offsets, offset), len(self.chunks)):
            yield self.chunks[index]

    def sizes(self, offset: int) -> Iterator[list[tuple[int, int]]]:
        yield [(chunk.last_offset, chunk.size_from(offset)) for chunk in self.since(offset)]

    def trim(self, start: int) -> None:
        self.start = max(self.start, start)
        gone = bisect_left(self.last_offsets, self.start)
        del self.chunks[:gone], self.last_offsets[:gone]


class MemoryLog:
    """Implements `kshim.storage.interfaces.Log`."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self._nothing = _Partition()
        self._deleted: set[int] = set()
        self._retentions: dict[int, Retention | None] = {}
        self._watchers = Watchers()

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
        partition = self._partitions.get(partition_no)
        if partition is None:
            partition = self._partitions[partition_no] = _Partition()
        base_offset = partition.end
        stamp_ms = now_ms if log_append_time else None
        placed = chunk.place(batch, base_offset, leader_epoch, stamp_ms, header)
        so_far = partition.chunks[-1].max_timestamp_so_far if partition.chunks else NO_TIMESTAMP
        last_offset = placed.next_offset - 1
        partition.chunks.append(Chunk(last_offset, max(so_far, placed.max_timestamp), bytes(placed.batches)))
        partition.last_offsets.append(last_offset)
        partition.aborted += partition.producers.replay(placed.produced).aborted
        self._watchers.notify((partition_no,))
        return succeed(Appended(base_offset, partition.start, now_ms if log_append_time else NO_TIMESTAMP))

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
        end = partition.end if up_to is None else min(up_to, partition.end)
        if not partition.start <= offset < end:
            return b""
        return chunk.read(partition.since(offset), offset, end, max_bytes, min_one)

    def offsets(self, partition_no: int) -> Offsets:
        partition = self._partition(partition_no)
        end = partition.end
        return Offsets(partition.start, end, end, partition.producers.last_stable_offset(end))

    def producers(self, partition_no: int) -> Producers:
        return self._partition(partition_no).producers

    def forget_producers(self, silent_since_ms: int) -> None:
        for partition in self._partitions.values():
            partition.producers.forget(silent_since_ms)

    def last_aborted_offset(self, partition_no: int) -> int:
        aborted = self._partition(partition_no).aborted
        return aborted[-1].last_offset if aborted else -1

    def aborted_transactions(self, partition_no: int, start: int, end: int) -> tuple[Aborted, ...]:
        aborted = self._partition(partition_no).aborted
        first = bisect_left(aborted, start, key=attrgetter("last_offset"))
        return between(islice(aborted, first, None), start, end)

    def offset_for_time(self, partition_no: int, timestamp_ms: int) -> Search:
        partition = self._partition(partition_no)
        return times.offset_for_time(partition.seek, partition.start, partition.end, timestamp_ms)

    def max_timestamp(self, partition_no: int) -> Search:
        partition = self._partition(partition_no)
        return times.max_timestamp(partition.seek, partition.start, partition.end)

    def epoch_boundary(self, partition_no: int, leader_epoch: int) -> EpochBoundary:
        partition = self._partition(partition_no)
        return epoch_boundary(partition.seek, partition.start, partition.end, leader_epoch)

    def sizes(self, partition_no: int, offset: int) -> Sequence[tuple[int, int]]:
        return next(self._partition(partition_no).sizes(offset))

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.watch(partition_no, callback)

    def wake(self, partition_no: int) -> None:
        self._watchers.notify((partition_no,))

    def configure(self, partition_no: int, cleanup: Cleanup) -> None:
        """Set the retention. This log is never compacted: that would block the reactor, and no restart loads
        the log again.
        """
        self._retentions[partition_no] = cleanup.retention

    def clean(self, now_ms: int) -> None:
        for partition_no, retention in self._retentions.items():
            if retention is not None and (partition := self._partitions.get(partition_no)) is not None:
                bounds = partition.start, partition.end
                partition.trim(run(expired(partition.seek, partition.sizes, *bounds, retention, now_ms)))
                if partition.start != bounds[0]:
                    self.wake(partition_no)

    def delete_records(self, partition_no: int, offset: int) -> Deferred[int]:
        if partition_no in self._deleted:
            return fail(StorageError(f"partition {partition_no} was deleted"))
        partition = self._partition(partition_no)
        assert 0 <= offset <= partition.end
        partition.trim(offset)
        self.wake(partition_no)
        return succeed(partition.start)

    def delete(self, partition_no: int) -> None:
        self._deleted.add(partition_no)
        self._partitions.pop(partition_no, None)
        self._retentions.pop(partition_no, None)
        self._watchers.notify((partition_no,))

    def _partition(self, partition_no: int) -> _Partition:
        return self._partitions.get(partition_no) or self._nothing


class MemoryMetadata:
    """Implements `kshim.storage.interfaces.Metadata`."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._values.get(key)

    def items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(item for item in self._values.items() if item[0].startswith(prefix)))

    def put(self, changes: Mapping[bytes, bytes | None]) -> Deferred[None]:
        for key, value in changes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        return succeed(None)
