"""Turns a partition's answer to Fetch into records, without markers and without aborted transactions."""

from __future__ import annotations

from collections.abc import Iterator

from kshim.client.record import Consumed
from schemas.error_code import ErrorCode
from schemas.messages.fetch import PartitionData
from schemas.records import batch
from schemas.records.batch import CorruptRecordBatch
from schemas.records.end_txn_marker import decode_marker


class FetchedPartition:
    """One partition's answer. Iterate over it once."""

    def __init__(self, topic: str, answered: PartitionData, wanted: int) -> None:
        """wanted: the offset that was asked for. The first batch may begin before it."""
        self._topic = topic
        self._answered = answered
        self._wanted = wanted
        self.position = wanted
        """The offset to ask for next: behind all that the iteration has passed."""

    def __iter__(self) -> Iterator[Consumed]:
        """Raises CorruptRecordBatch."""
        partition = self._answered.partition_index
        for data in self._committed_batches():
            for record in batch.records(data):
                if record.offset >= self._wanted:
                    self.position = record.offset + 1
                    yield Consumed(self._topic, partition, *record)

    def _committed_batches(self) -> Iterator[memoryview]:
        """Yield the batches of records, and set the position behind each batch."""
        beginning = sorted(
            (each.first_offset, each.producer_id) for each in self._answered.aborted_transactions or ()
        )
        aborted: set[int] = set()
        for data in batch.batches(bytes(self._answered.records or b"")):
            header = batch.decode_header(data)
            if batch.crc32c(data[batch.ATTRIBUTES_AT :]) != header.crc:
                raise CorruptRecordBatch(ErrorCode.CORRUPT_MESSAGE, "its checksum does not match")
            while beginning and beginning[0][0] <= header.last_offset:
                aborted.add(beginning.pop(0)[1])
            if header.is_control:
                marker = decode_marker(data)
                if marker is not None and not marker.committed:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                yield data
            self.position = max(self._wanted, header.next_offset)
