"""Finds records that exceed their retention. The writer thread searches in steps, and the reactor thread then
moves the log start offset.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kshim.storage.chunk import Chunk
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.rows import CHUNK_KEY, SO_FAR
from kshim.storage.embedded.writes import chunk_sizes, last_chunk_key, log_start_offset
from kshim.storage.interfaces import Retention
from kshim.storage.retention import expired


class Check(NamedTuple):
    """A search through all partitions with a retention. retentions: by partition_no."""

    retentions: Mapping[int, Retention]
    now_ms: int


class Expired(NamedTuple):
    """The result for one partition: the offset at which its log should start."""

    partition_no: int
    log_start_offset: int


class Expiry:
    """Makes one check at a time. A check that is added while another one is under way is dropped."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._steps: Iterator[Expired | None] | None = None

    @property
    def due(self) -> bool:
        return self._steps is not None

    def add(self, check: Check) -> None:
        if self._steps is None:
            self._steps = self._check(check)

    def step(self) -> Expired | None:
        assert self._steps is not None
        try:
            return next(self._steps)
        except StopIteration:
            self._steps = None
            return None
        except BaseException:
            self._steps = None  # the next check begins anew
            raise

    def _check(self, check: Check) -> Iterator[Expired | None]:
        for partition_no, retention in check.retentions.items():
            looking = _Looking(self._environment, partition_no)
            start, end = looking.bounds()
            if start == end:
                yield None
                continue
            new_start = yield from expired(looking.seek, looking.sizes, start, end, retention, check.now_ms)
            yield Expired(partition_no, new_start) if new_start > start else None


class _Looking:
    """One partition, as `expired` reads it. All stored chunks are durable, so the last one ends at the high
    watermark.
    """

    def __init__(self, environment: Environment, partition_no: int) -> None:
        self._environment = environment
        self._partition_no = partition_no

    def bounds(self) -> tuple[int, int]:
        """The log start offset and the end offset."""
        with self._environment.read("log") as transaction:
            start = log_start_offset(self._environment, transaction, self._partition_no)
            last = last_chunk_key(transaction, self._partition_no)
            return start, start if last is None else max(start, CHUNK_KEY.unpack(last)[1] + 1)

    def seek(self, offset: int) -> Chunk | None:
        with self._environment.read("log") as transaction:
            cursor = transaction.cursor()
            if not cursor.set_range(CHUNK_KEY.pack(self._partition_no, offset)):
                return None
            (found_no, last_offset), value = CHUNK_KEY.unpack(cursor.key()), cursor.value()
            if found_no != self._partition_no:
                return None
            return Chunk(last_offset, SO_FAR.unpack_from(value)[0], bytes(value[SO_FAR.size :]))

    def sizes(self, offset: int) -> Iterator[Sequence[tuple[int, int]]]:
        while found := self._some_sizes(offset):
            yield found
            offset = found[-1][0] + 1

    def _some_sizes(self, offset: int) -> list[tuple[int, int]]:
        with self._environment.read("log") as transaction:
            return chunk_sizes(transaction, self._partition_no, offset)
