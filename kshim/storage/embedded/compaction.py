"""Compacts partitions, in bounded steps of the writer thread between queued writes.

A step reads some chunks and gathers their remaining batches. Once these fill a chunk, it replaces the old
chunks in one transaction. So every transaction leaves a correct log. Only the end of a pass is stored: an
interrupted pass starts again from the beginning.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from twisted.logger import Logger

from kshim.storage.chunk import Chunk
from kshim.storage.compaction import Compacted, Latest
from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.producers import forget_aborted, load_aborted, load_producers
from kshim.storage.embedded.rows import CHUNK_KEY, PARTITION_KEY, PROGRESS, SO_FAR
from kshim.storage.embedded.writes import CHUNK_BYTES, log_start_offset
from kshim.storage.interfaces import Compaction
from kshim.storage.producers import Aborted, Producers
from schemas.records.batch import NO_TIMESTAMP, batches, decode_header

STEP_BYTES = 16 * 1024
"""Most bytes that a step reads, unless a single chunk is larger."""
STEP_CHUNKS = 256
"""Most chunks that one transaction replaces."""

LONG_MAX = 2**63 - 1

logger = Logger()


class Progress(NamedTuple):
    """The offset up to which a partition is compacted, and the number of records below it."""

    end: int = 0
    records: int = 0


def load_progress(environment: Environment, partition_no: int) -> Progress:
    with environment.read("compacted") as transaction:
        found = transaction.get(PARTITION_KEY.pack(partition_no))
        return Progress() if found is None else Progress(*PROGRESS.unpack(found))


class Pass(NamedTuple):
    """A pass over one partition, below `last_stable_offset`. The newest chunk below it is not compacted, nor
    is any from the first on that has a record younger than min.compaction.lag.ms.
    """

    partition_no: int
    last_stable_offset: int
    compaction: Compaction
    now_ms: int


class Compactor:
    """Makes the added passes one after the other. Only the writer thread uses it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._passes: deque[Pass] = deque()
        self._steps: Iterator[None] | None = None

    def add(self, wanted: Pass) -> None:
        self._passes.append(wanted)

    def forget(self, partition_no: int) -> None:
        """Drop the passes of a partition that is being deleted."""
        if self._passes and self._passes[0].partition_no == partition_no:
            self._steps = None
        self._passes = deque(known for known in self._passes if known.partition_no != partition_no)

    @property
    def due(self) -> bool:
        return bool(self._passes)

    def step(self) -> Pass | None:
        """Do a little work. Returns the pass if this step has ended it, or if it has failed."""
        if self._steps is None:
            self._steps = _Compacting(self._environment, self._passes[0]).steps()
        try:
            next(self._steps)
            ended = None
        except StopIteration:
            ended = self._passes.popleft()
        except Exception as error:  # the partition stays as it is, and the writer goes on
            ended = self._passes.popleft()
            logger.error("partition {no} is not compacted: {error}", no=ended.partition_no, error=error)
        if ended is not None:
            self._steps = None
        return ended


class _Compacting:
    """A pass under way: the chunks that were read but not replaced yet, and their remaining batches."""

    def __init__(self, environment: Environment, wanted: Pass) -> None:
        self._environment = environment
        self._partition_no = wanted.partition_no
        self._end = wanted.last_stable_offset
        self._compaction = wanted.compaction
        self._now_ms = wanted.now_ms
        lag_ms = wanted.compaction.min_compaction_lag_ms
        self._latest_ms = wanted.now_ms - lag_ms if lag_ms else LONG_MAX
        """The largest timestamp of a record that may be compacted."""
        self._max_timestamp = NO_TIMESTAMP
        self._records = 0
        self._begin_chunk()

    def steps(self) -> Iterator[None]:
        """Make the pass. Each yield ends a step."""
        start = load_progress(self._environment, self._partition_no).end
        aborted, producers = self._load()
        latest = Latest(start, aborted)
        for chunks in self._read():
            for batch in (batch for chunk in chunks for batch in batches(chunk.batches)):
                if not latest.is_full:
                    latest.note(batch)
            yield
            if latest.is_full:
                break
        if latest.end == start:
            return
        compacted = Compacted(latest, self._compaction, self._now_ms, aborted, producers)
        for chunks in self._read():
            if chunks[0].first_offset >= latest.end:
                break
            for chunk in chunks:
                self._take(chunk, latest, compacted)
            yield
        self._replace(Progress(latest.end, self._records), compacted.gone)

    def _load(self) -> tuple[list[Aborted], Producers]:
        with self._environment.read("log") as transaction:
            aborted = list(load_aborted(self._environment, transaction, self._partition_no))
            return aborted, load_producers(self._environment, transaction, self._partition_no)

    def _read(self) -> Iterator[list[Chunk]]:
        """Copies of all chunks that may be compacted, as lists of at most STEP_BYTES."""
        offset = 0
        while found := self._next_chunks(offset):
            yield found
            offset = found[-1].last_offset + 1

    def _next_chunks(self, offset: int) -> list[Chunk]:
        found: list[Chunk] = []
        size = 0
        with self._environment.read("log") as transaction:
            cursor = transaction.cursor()
            cursor.set_range(CHUNK_KEY.pack(self._partition_no, offset))
            for key, value in cursor.iternext():
                partition_no, last_offset = CHUNK_KEY.unpack(key)
                size += len(value)
                is_newest = partition_no != self._partition_no or last_offset >= self._end - 1
                if is_newest or (found and size > STEP_BYTES):
                    break
                (max_timestamp,) = SO_FAR.unpack_from(value)
                if max_timestamp > self._latest_ms:
                    break
                found.append(Chunk(last_offset, max_timestamp, bytes(value[SO_FAR.size :])))
        return found

    def _take(self, chunk: Chunk, latest: Latest, compacted: Compacted) -> None:
        """Add the remaining batches of a chunk to the new chunk. If that is full, write it first."""
        left: list[bytes] = []
        is_same = True
        max_timestamp = self._max_timestamp
        for batch in batches(chunk.batches):
            remains = compacted.left_of(batch)
            is_same = is_same and remains is batch
            if remains is None:
                continue
            left.append(bytes(remains))  # a view would keep the whole chunk in memory
            header = decode_header(remains)
            if header.records_count:
                max_timestamp = max(max_timestamp, header.max_timestamp)
            if header.base_offset < latest.end:
                self._records += header.records_count
        size = sum(map(len, left))
        if len(self._replaced) == STEP_CHUNKS or (self._left and self._size + size > CHUNK_BYTES):
            self._replace()
        self._max_timestamp = max_timestamp
        self._is_same = not self._replaced and is_same and chunk.max_timestamp_so_far == max_timestamp
        self._replaced.append(chunk.last_offset)
        self._left += left
        self._size += size

    def _begin_chunk(self) -> None:
        self._replaced: list[int] = []
        self._left: list[bytes] = []
        self._size = 0
        self._is_same = True

    def _replace(self, progress: Progress | None = None, gone: Sequence[Aborted] = ()) -> None:
        """Replace the chunks that were read by the new chunk.

        progress, gone: given at the end of the pass. Then the progress is stored, too, and the aborted
        transactions in `gone` are forgotten.
        """

        def change(transaction: WriteTransaction) -> None:
            if not self._is_same:
                self._put(transaction)
            if progress is not None:
                name = PARTITION_KEY.pack(self._partition_no)
                transaction.put(name, PROGRESS.pack(*progress), db=self._environment.compacted)
                forget_aborted(self._environment, transaction, self._partition_no, gone)

        if progress is not None or not self._is_same:
            self._environment.write(change, frees=True)
        self._begin_chunk()

    def _put(self, transaction: WriteTransaction) -> None:
        """Write the new chunk. The first write also stores an empty Progress, which says that the partition
        may lack records.
        """
        begun = PROGRESS.pack(*Progress())
        name = PARTITION_KEY.pack(self._partition_no)
        transaction.put(name, begun, overwrite=False, db=self._environment.compacted)
        database = self._environment.log
        for last_offset in self._replaced:
            transaction.delete(CHUNK_KEY.pack(self._partition_no, last_offset), db=database)
        start = log_start_offset(self._environment, transaction, self._partition_no)
        left = [batch for batch in self._left if decode_header(batch).last_offset >= start]
        if left:
            key = CHUNK_KEY.pack(self._partition_no, decode_header(left[-1]).last_offset)
            value = b"".join((SO_FAR.pack(self._max_timestamp), *left))
            transaction.put(key, value, db=database)
