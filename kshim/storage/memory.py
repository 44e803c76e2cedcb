"""A store in memory, for tests and `--data-dir :memory:`: appends are durable at once, and until the end."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping

from twisted.internet.defer import Deferred, fail, succeed

from kshim.storage import chunk
from kshim.storage.chunk import Chunk
from kshim.storage.interfaces import Appended, Compaction, Offsets, StorageError, TimestampOffset
from kshim.storage.watchers import Watchers
from schemas.record_batch import NO_TIMESTAMP

__all__ = ["MemoryLog", "MemoryMetadata", "MemoryStore"]


class MemoryStore:
    """Implements `kshim.storage.interfaces.Store`. Every Deferred has fired when it is returned."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.metadata = MemoryMetadata()

    def open(self) -> None:
        pass

    def close(self) -> Deferred[None]:
        return succeed(None)


class _Partition:
    __slots__ = ("chunks", "last_offsets")

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.last_offsets: list[int] = []

    @property
    def end(self) -> int:
        return self.last_offsets[-1] + 1 if self.last_offsets else 0

    def seek(self, offset: int) -> Chunk | None:
        index = bisect_left(self.last_offsets, offset)
        return self.chunks[index] if index < len(self.chunks) else None

    def since(self, offset: int) -> Iterator[Chunk]:
        for index in range(bisect_left(self.last_offsets, offset), len(self.chunks)):
            yield self.chunks[index]


class MemoryLog:
    """Implements `kshim.storage.interfaces.Log`."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self._deleted: set[int] = set()
        self._watchers = Watchers()

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
        partition = self._partitions.setdefault(partition_no, _Partition())
        base_offset = partition.end
        placed = chunk.place(batch, base_offset, leader_epoch, now_ms if log_append_time else None)
        so_far = partition.chunks[-1].max_timestamp_so_far if partition.chunks else NO_TIMESTAMP
        last_offset = placed.next_offset - 1
        partition.chunks.append(Chunk(last_offset, max(so_far, placed.max_timestamp), bytes(placed.batches)))
        partition.last_offsets.append(last_offset)
        self._watchers.notify((partition_no,))
        return succeed(Appended(base_offset, 0, now_ms if log_append_time else NO_TIMESTAMP))

    def read(self, partition_no: int, offset: int, max_bytes: int, *, min_one: bool = True) -> bytes:
        partition = self._partition(partition_no)
        if not 0 <= offset < partition.end:
            return b""
        return chunk.read(partition.since(offset), offset, max_bytes, min_one)

    def offsets(self, partition_no: int) -> Offsets:
        end = self._partition(partition_no).end
        return Offsets(0, end, end)

    def offset_for_time(self, partition_no: int, timestamp_ms: int) -> TimestampOffset | None:
        partition = self._partition(partition_no)
        return chunk.offset_for_time(partition.seek, 0, partition.end, timestamp_ms)

    def max_timestamp(self, partition_no: int) -> TimestampOffset | None:
        partition = self._partition(partition_no)
        return chunk.max_timestamp(partition.seek, 0, partition.end)

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.watch(partition_no, callback)

    def compact(self, partition_no: int, compaction: Compaction) -> None:
        """Nothing: it would take the reactor's own time, for a log that is never loaded again."""

    def delete(self, partition_no: int) -> None:
        self._deleted.add(partition_no)
        self._partitions.pop(partition_no, None)
        self._watchers.notify((partition_no,))

    def _partition(self, partition_no: int) -> _Partition:
        return self._partitions.get(partition_no) or _Partition()


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
