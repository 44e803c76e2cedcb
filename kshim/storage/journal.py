"""The journal of the group coordinator: __consumer_offsets as Kafka keeps it, in partitions of a Log."""

from collections.abc import Iterator, Sequence

from twisted.internet.defer import Deferred, succeed

from kshim.storage.interfaces import Appended, Log, StorageError
from schemas.record_batch import CorruptRecordBatch, Record, batches, decode_header, encode, records

__all__ = ["LogJournal"]

LOAD_BYTES = 1024 * 1024


class LogJournal:
    """Implements `kshim.storage.interfaces.Journal`: a record batch an append, CreateTime, no producer id.

    `partition_nos[shard]` is the partition_no of __consumer_offsets-<shard>.
    """

    def __init__(self, log: Log, partition_nos: Sequence[int]) -> None:
        self._log = log
        self._partition_nos = tuple(partition_nos)

    def append(
        self, shard: int, records: Sequence[tuple[bytes, bytes | None]], now_ms: int
    ) -> Deferred[None]:
        if not records:
            return succeed(None)
        batch = encode(Record(delta, now_ms, key, value) for delta, (key, value) in enumerate(records))
        return self._log.append(self._partition_nos[shard], batch, now_ms=now_ms).addCallback(_durable)

    def load(self, shard: int) -> Iterator[tuple[bytes, bytes | None]]:
        partition_no = self._partition_nos[shard]
        offset, end, _ = self._log.offsets(partition_no)
        while offset < end and (data := self._log.read(partition_no, offset, LOAD_BYTES)):
            try:
                for batch in batches(data):
                    header = decode_header(batch)
                    if not header.is_control:
                        yield from ((r.key, r.value) for r in records(batch) if r.key is not None)
                    offset = header.next_offset
            except CorruptRecordBatch as error:
                raise StorageError(f"__consumer_offsets-{shard} at offset {offset}: {error}") from None


def _durable(_: Appended) -> None:
    return None
