"""Which records a compacted partition keeps: of each key the last, and a tombstone for some time.

A pass goes over a log twice. First `Latest` learns where the last record of each key is, then `compact` takes
from each batch what is no longer needed. A batch never changes its place: it gets fewer records, or goes.
Kafka's rules (KIP-58, KIP-534): a tombstone stays for delete.retention.ms after the first pass that saw it;
a batch without records stays while its producer may send it again; transactions are left as they are.
"""

from hashlib import blake2b

from kshim.storage.interfaces import Compaction
from schemas.record_batch import CorruptRecordBatch, Record, RecordBatchHeader, decode_header, records, retain

MAX_KEYS = 200_000
"""Keys of one pass, about 200 bytes each; what has more takes several passes."""
MAX_PRODUCERS = 5000
PRODUCER_BATCHES = 5
"""What an idempotent producer may have on its way, and so may send again."""


class Latest:
    """Where the last record of each key is, and the last batches of each producer, before offset `end`."""

    def __init__(self, start: int) -> None:
        """Batches before `start` were compacted before: their keys are not looked at."""
        self.end = self._start = start
        self._offsets: dict[bytes, int] = {}
        self._producers: dict[int, tuple[int, ...]] = {}

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= MAX_KEYS

    def note(self, batch: memoryview) -> None:
        """The next batch of the log."""
        header = decode_header(batch)
        if header.producer_id >= 0:
            known = self._producers.pop(header.producer_id, ())
            self._producers[header.producer_id] = (*known, header.base_offset)[-PRODUCER_BATCHES:]
            if len(self._producers) > MAX_PRODUCERS:
                del self._producers[next(iter(self._producers))]
        if header.base_offset < self._start:
            return
        if not _is_left_alone(header):
            self._offsets.update(_last_offsets(batch))
        self.end = header.next_offset

    def is_last(self, record: Record) -> bool:
        """Whether no later record is known that has its key. Kafka removes records without a key."""
        return record.key is not None and self._offsets.get(_digest(record.key), 0) <= record.offset

    def may_come_again(self, header: RecordBatchHeader) -> bool:
        return header.base_offset in self._producers.get(header.producer_id, ())


def compact(
    batch: memoryview, latest: Latest, compaction: Compaction, now_ms: int
) -> bytes | bytearray | memoryview | None:
    """What is left of a batch; the batch itself if that is all of it, None if it may go."""
    header = decode_header(batch)
    if header.base_offset >= latest.end or _is_left_alone(header):
        return batch
    horizon_ms = header.delete_horizon_ms
    keep_tombstones = horizon_ms is None or now_ms < horizon_ms

    def is_retained(record: Record) -> bool:
        return latest.is_last(record) and (record.value is not None or keep_tombstones)

    try:
        left = retain(batch, is_retained, now_ms + compaction.delete_retention_ms)
    except CorruptRecordBatch:
        return batch
    return left if decode_header(left).records_count or latest.may_come_again(header) else None


def _is_left_alone(header: RecordBatchHeader) -> bool:
    return header.is_transactional or header.is_control


def _last_offsets(batch: memoryview) -> dict[bytes, int]:
    """By key, in one batch; nothing of one that cannot be decoded, so that all before it is kept."""
    try:
        return {_digest(record.key): record.offset for record in records(batch) if record.key is not None}
    except CorruptRecordBatch:
        return {}


def _digest(key: bytes) -> bytes:
    """16 bytes for a key of any length, as Kafka's own map has them."""
    return blake2b(key, digest_size=16).digest()
