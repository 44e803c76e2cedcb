"""Compaction keeps the last record of each key, and a tombstone for some time.

A pass reads a log twice, up to the first open transaction. First `Latest` notes the offset of the last record
of each key. Then `Compacted` removes the records that are no longer needed from each batch. A batch never
moves: it loses records, or is removed.

These are Kafka's rules (KIP-58, KIP-98, KIP-534). Records of an aborted transaction are removed. A tombstone
stays for delete.retention.ms after the first pass that finds it, and so does a marker whose transaction has
no records left. A batch without records stays if it is the last of its producer.
"""

from collections.abc import Iterable

from kshim.storage.interfaces import Compaction
from kshim.storage.producers import Aborted, Producers
from schemas.records.batch import (
    CorruptRecordBatch,
    Record,
    RecordBatchHeader,
    decode_header,
    records,
)
from schemas.records.end_txn_marker import decode_marker
from schemas.records.rewriting import retain

MAX_KEYS = 200_000
"""Most keys in one pass, at about 200 bytes of memory each. A log with more keys takes several passes."""

MAX_RECORDS = 50_000
MAX_BYTES = 16 * 1024 * 1024
"""A batch with more records, or more bytes when decompressed, is not compacted: a step of a pass would take
more than 100 ms.
"""

View = bytes | bytearray | memoryview


class Transactions:
    """Finds the aborted transaction of each batch. A pass calls it for all batches of a log, in order."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._to_come = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, Aborted] = {}
        self._seen: set[int] = set()
        """The ids of producers that have written records since their last marker."""

    def is_aborted(self, header: RecordBatchHeader) -> bool:
        """True if a batch of records belongs to an aborted transaction."""
        if not header.is_transactional or header.producer_id < 0:
            return False
        self._go_to(header.last_offset)
        self._seen.add(header.producer_id)
        return header.producer_id in self._aborted

    def ended_by(self, header: RecordBatchHeader) -> tuple[bool, Aborted | None]:
        """Return True if a batch of the marker's transaction was seen, and the transaction that the marker
        aborts, or None.

        header: of the marker.
        """
        self._go_to(header.last_offset)
        was_seen = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        return was_seen, self._aborted.pop(header.producer_id, None)

    def _go_to(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            transaction = self._to_come.pop()
            self._aborted.setdefault(transaction.producer_id, transaction)


class Latest:
    """The offset of the last record of each key, below offset `end`."""

    def __init__(self, start: int, aborted: Iterable[Aborted] = ()) -> None:
        """start: an earlier pass has compacted the batches before this offset, so their keys are skipped."""
        self.end = self._start = start
        self._offsets: dict[bytes, int] = {}
        self._transactions = Transactions(aborted)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= MAX_KEYS

    def note(self, batch: memoryview) -> None:
        """Note the keys of the next batch of the log."""
        header = decode_header(batch)
        if header.is_control:
            self._transactions.ended_by(header)
            is_wanted = False
        else:
            is_wanted = not self._transactions.is_aborted(header)
        if header.base_offset >= self._start:
            if is_wanted:
                self._offsets.update(_last_offsets(batch))
            self.end = header.next_offset

    def is_last(self, record: Record) -> bool:
        """True if no later record with the same key is known. False for a record without a key: Kafka removes
        these, too.
        """
        return record.key is not None and self._offsets.get(_digest(record.key), 0) <= record.offset


class Compacted:
    """Removes unneeded records from batches. A pass calls it for all batches of a log, in order."""

    def __init__(
        self,
        latest: Latest,
        compaction: Compaction,
        now_ms: int,
        aborted: Iterable[Aborted] = (),
        producers: Producers | None = None,
    ) -> None:
        self._latest = latest
        self._horizon_ms = now_ms + compaction.delete_retention_ms
        self._now_ms = now_ms
        self._transactions = Transactions(aborted)
        self._producers = producers or Producers()
        self.gone: list[Aborted] = []
        """The aborted transactions of which only the marker was left. Their index entries can be deleted."""

    def left_of(self, batch: memoryview) -> View | None:
        """The batch without unneeded records: `batch` itself if all of it stays, None if all of it goes."""
        header = decode_header(batch)
        if header.base_offset >= self._latest.end or header.records_count > MAX_RECORDS:
            return batch
        try:
            left = self._left_of_marker(header, batch) if header.is_control else self._left_of(header, batch)
        except CorruptRecordBatch:
            return batch
        return left if decode_header(left).records_count or self._is_last_of_producer(header) else None

    def _left_of(self, header: RecordBatchHeader, batch: memoryview) -> View:
        is_aborted = self._transactions.is_aborted(header)
        keep_tombstones = not self._is_over(header)

        def is_retained(record: Record) -> bool:
            return self._latest.is_last(record) and (record.value is not None or keep_tombstones)

        wanted = (lambda _: False) if is_aborted else is_retained
        return retain(batch, wanted, self._horizon_ms, max_bytes=MAX_BYTES)

    def _left_of_marker(self, header: RecordBatchHeader, batch: memoryview) -> View:
        if decode_marker(batch) is None:
            return batch  # emptied by an earlier pass, or not a marker
        was_seen, aborted = self._transactions.ended_by(header)
        if was_seen:
            return batch
        if aborted is not None:
            self.gone.append(aborted)
        is_over = self._is_over(header)
        return retain(batch, lambda _: not is_over, self._horizon_ms, gets_horizon=True)

    def _is_over(self, header: RecordBatchHeader) -> bool:
        return header.delete_horizon_ms is not None and self._now_ms >= header.delete_horizon_ms

    def _is_last_of_producer(self, header: RecordBatchHeader) -> bool:
        """True for the last batch that a producer has sent, and for a marker after it."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return False
        if producer.batches:
            return header.base_offset == producer.batches[-1].base_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch


def _last_offsets(batch: memoryview) -> dict[bytes, int]:
    """The last offset of each key in a batch. Empty if the batch cannot be decoded or is too large; then
    earlier records with its keys are kept.
    """
    if decode_header(batch).records_count > MAX_RECORDS:
        return {}
    try:
        decoded = records(batch, max_bytes=MAX_BYTES)
        return {_digest(record.key): record.offset for record in decoded if record.key is not None}
    except CorruptRecordBatch:
        return {}


def _digest(key: bytes) -> bytes:
    """16 bytes for a key of any length, as in Kafka's offset map."""
    from hashlib import blake2b

    return blake2b(key, digest_size=16).digest()
