"""The journal of the group coordinator: Kafka's records of __consumer_offsets in partitions of a Log."""

from collections.abc import Iterator, Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed

from kshim.storage.interfaces import NO_PRODUCER, JournalBatch, Log, StorageDamaged
from schemas.records.batch import CorruptRecordBatch, batches, decode_header, encode_entries, records
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker, encode_marker
from schemas.records.keyed import read_plain

__all__ = ["LogJournal"]

LOAD_BYTES = 1024 * 1024
LOAD_RECORDS = 500
"""About how many records of neighbouring batches are loaded as one entry. That takes about a millisecond."""


class LogJournal:
    """Implements `kshim.storage.interfaces.Journal`: each append is one record batch with CreateTime.

    Batches of a transaction are transactional and have its producer's id and epoch, but no sequence. A
    transaction ends with a control batch. `partition_nos[shard]` is the partition_no of
    __consumer_offsets-<shard>.
    """

    def __init__(self, log: Log, partition_nos: Sequence[int]) -> None:
        self._log = log
        self._partition_nos = tuple(partition_nos)

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        *,
        producer: tuple[int, int] = NO_PRODUCER,
    ) -> Deferred[Any]:
        producer_id, producer_epoch = producer
        batch = encode_entries(
            records,
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=producer != NO_PRODUCER,
        )
        partition_no = self._partition_nos[shard]
        return self._log.append(partition_no, batch.data, now_ms=now_ms, header=batch.header)

    def prove_leadership(self, shard: int) -> Deferred[Any]:
        return succeed(None)  # no other process has the store

    def end_transaction(self, shard: int, marker: EndTxnMarker) -> Deferred[Any]:
        batch = encode_marker(marker)
        return self._log.append(self._partition_nos[shard], batch, now_ms=marker.timestamp_ms)

    def load(self, shard: int) -> Iterator[JournalBatch | EndTxnMarker]:
        partition_no = self._partition_nos[shard]
        start = self._log.offsets(partition_no)
        offset, end = start.log_start_offset, start.high_watermark
        while offset < end and (data := self._log.read(partition_no, offset, LOAD_BYTES)):
            position = 0
            while position < len(data):
                records, position, next_offset = read_plain(data, position, LOAD_RECORDS)
                if records:
                    yield JournalBatch(tuple(records))
                if next_offset is not None:
                    offset = next_offset
                    continue
                try:
                    batch = next(batches(memoryview(data)[position:]), memoryview(b""))
                    entry, offset = _entry(batch), decode_header(batch).next_offset
                except CorruptRecordBatch as error:
                    raise StorageDamaged(f"__consumer_offsets-{shard} at offset {offset}: {error}") from None
                if entry is not None:
                    yield entry
                position += len(batch)


def _entry(batch: memoryview) -> JournalBatch | EndTxnMarker | None:
    """The entry in a batch; None for a control batch that ends no transaction. Skips records without a key.
    Raises CorruptRecordBatch.
    """
    header = decode_header(batch)
    if header.is_control:
        return decode_marker(batch)
    producer = (header.producer_id, header.producer_epoch) if header.is_transactional else NO_PRODUCER
    return JournalBatch(tuple((r.key, r.value) for r in records(batch) if r.key is not None), producer)
