"""Idempotent appends: a batch that a producer sends again is not written again.

The state is what the log says: it is read from the newest batch headers of a partition when the first
idempotent batch comes after a start, and kept up to date from then on. So kill -9 loses nothing of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, fail, succeed
from twisted.python.failure import Failure

from kshim.producers import PartitionProducers, SentBatch, replay
from kshim.storage.interfaces import Appended, Log, StorageError
from schemas.error_code import ErrorCode
from schemas.record_batch import RecordBatchHeader, batches, decode_header

if TYPE_CHECKING:
    from collections.abc import Iterator

# How far back the log is read: a producer has at most five batches on their way, so what was sent long before
# the
# end is never sent again. Whoever wrote only before that is an unknown producer, whose next batch is
# accepted.
_MAX_SCANNED_BYTES = 16 * 1024 * 1024
_MAX_SCANNED_RECORDS = 50_000
_FIRST_WINDOW_RECORDS = 1000
_READ_BYTES = 1024 * 1024


class _Partition:
    """in_flight: by base offset, who waits for a batch that is not durable yet. failed: an append has."""

    __slots__ = ("failed", "in_flight", "producers")

    def __init__(self, producers: PartitionProducers) -> None:
        self.producers = producers
        self.in_flight: dict[int, list[Deferred[Appended]]] = {}
        self.failed = False


class ProducerStates:
    """The producers of all partitions that idempotent batches were sent to since the start."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}

    def forget(self, partition_no: int) -> None:
        """The partition was deleted."""
        self._partitions.pop(partition_no, None)

    def append(
        self,
        log: Log,
        partition_no: int,
        header: RecordBatchHeader,
        timestamp_ms: int,
        append: Callable[[], Deferred[Appended]],
    ) -> Deferred[Appended] | ErrorCode:
        """Call `append()` if the batch is new; answer one that was here before with its first offset, once
        durable.

        Returns an ErrorCode where the sequence or the epoch is wrong. The Deferred errbacks StorageError.
        `timestamp_ms` is what a repetition is answered with as its log append time; Kafka does so too.
        """
        partition = self._partitions.get(partition_no)
        if partition is None:
            partition = self._partitions[partition_no] = _Partition(replay(_newest(log, partition_no)))
        if partition.failed:
            return fail(StorageError("an earlier batch of this partition was not stored"))
        found = partition.producers.check(header)
        if isinstance(found, SentBatch):
            return self._repeat(log, partition_no, partition, found)
        if found is not ErrorCode.NONE:
            return found
        base_offset = log.offsets(partition_no).log_end_offset
        partition.producers.accept(header, base_offset, timestamp_ms)
        partition.in_flight[base_offset] = []
        return append().addBoth(self._appended, partition_no, partition, base_offset)

    def _repeat(
        self, log: Log, partition_no: int, partition: _Partition, sent: SentBatch
    ) -> Deferred[Appended]:
        log_start_offset = log.offsets(partition_no).log_start_offset
        answer = Appended(sent.base_offset, log_start_offset, sent.timestamp_ms)
        waiting = partition.in_flight.get(sent.base_offset)
        if waiting is None:
            return succeed(answer)
        original: Deferred[Appended] = Deferred()
        waiting.append(original)
        return original.addCallback(lambda _: answer)

    def _appended(
        self, result: Appended | Failure, partition_no: int, partition: _Partition, base_offset: int
    ) -> Appended | Failure:
        """Tell who waits. After a failure the state is wrong: it is dropped, as soon as nothing is on its way
        to the log.
        """
        waiting = partition.in_flight.pop(base_offset)
        partition.failed = partition.failed or isinstance(result, Failure)
        if partition.failed and not partition.in_flight and self._partitions.get(partition_no) is partition:
            del self._partitions[partition_no]
        for original in waiting:
            original.callback(result)
        return result


def _newest(log: Log, partition_no: int) -> list[RecordBatchHeader]:
    """The newest batch headers of a partition, oldest first; how many, is bounded by records and by bytes.

    A log reads forwards only, so this goes back window by window, each twice as long as the one before.
    """
    offsets = log.offsets(partition_no)
    newest: deque[RecordBatchHeader] = deque()
    end, window, scanned_bytes = offsets.high_watermark, _FIRST_WINDOW_RECORDS, 0
    oldest = max(offsets.log_start_offset, end - _MAX_SCANNED_RECORDS)
    while end > oldest and scanned_bytes < _MAX_SCANNED_BYTES:
        start = max(oldest, end - window)
        headers = list(_headers(log, partition_no, start, end))
        scanned_bytes += sum(header.size for header in headers)
        newest.extendleft(reversed(headers))
        end, window = min(start, newest[0].base_offset if newest else start), window * 2
    return list(newest)


def _headers(log: Log, partition_no: int, start: int, end: int) -> Iterator[RecordBatchHeader]:
    """The headers of the batches that begin before `end`, from the one that holds `start`."""
    while start < end:
        chunk = log.read(partition_no, start, _READ_BYTES)
        if not chunk:
            return
        for batch in batches(chunk):
            header = decode_header(batch)
            if header.base_offset >= end:
                return
            yield header
            start = header.next_offset
