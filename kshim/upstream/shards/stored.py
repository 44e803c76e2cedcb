"""What a shard's log holds: its leaders' batches, their claims, the ends of transactions, the records to be
loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kshim.storage.interfaces import JournalBatch, StorageDamaged
from kshim.upstream.shards.takeover import Batch
from kshim.upstream.shards.tenure import Entry, Outgoing
from kshim.upstream.shards.terms import term_of
from kshim.upstream.shards.transactions import ShardTransactions
from schemas.internal_topics.pending_offset import KEY as PENDING_KEY
from schemas.internal_topics.pending_offset import decode_pending_value
from schemas.internal_topics.shard_claim import KEY as CLAIM_KEY
from schemas.internal_topics.shard_claim import ShardClaim, decode_claim
from schemas.message import MalformedMessage
from schemas.records.batch import (
    HEADER_BYTES,
    Compression,
    CorruptRecordBatch,
    RecordBatchHeader,
    batches,
    decode_header,
    encode_entries,
    records,
)
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker
from schemas.records.record import keys_and_values

OURS = b"K"
"""The keys of records that Kafka's __consumer_offsets does not have begin with it."""
LOAD_RECORDS = 500
"""How many records are loaded as one entry, more or less: about a millisecond."""


def encode_batch(batch: Outgoing, now_ms: int) -> bytes:
    """A batch as it is sent."""
    return encode_entries(
        batch.entries,
        now_ms,
        producer_id=batch.term.producer_id,
        producer_epoch=batch.term.producer_epoch,
        base_sequence=batch.base_sequence,
    )


def read_batches(data: bytes, offset: int) -> Iterator[Batch]:
    """The whole batches in what a fetch from `offset` has brought. Raises StorageDamaged."""
    for header, position in _headers(data, offset):
        if header.is_control:
            yield Batch(header.next_offset, None, marker=_marker(data, position, header))
            continue
        term = term_of(header.producer_id, header.producer_epoch)
        entries = () if term is None else _entries(data, position, header)
        claims = [value for key, value in entries if key == CLAIM_KEY and value is not None]
        yield Batch(header.next_offset, term, _claim(claims[-1], header) if claims else None)


def loaded(
    fetched: Iterable[bytes], transactions: ShardTransactions
) -> Iterator[JournalBatch | EndTxnMarker]:
    """What counts in all that was fetched, oldest first: the records of leaders, without claims, and the ends
    of transactions. `transactions` takes note of what it is about. Raises StorageDamaged.
    """
    gathered: list[Entry] = []
    for data in fetched:
        for header, position in _headers(data, 0):
            found = _in_batch(data, position, header, transactions)
            for each in found:
                if isinstance(each, list):
                    gathered += each
                    continue
                if gathered:
                    yield JournalBatch(gathered)
                    gathered = []
                yield each
            if len(gathered) >= LOAD_RECORDS:
                yield JournalBatch(gathered)
                gathered = []
    if gathered:
        yield JournalBatch(gathered)


def _in_batch(
    data: bytes, position: int, header: RecordBatchHeader, transactions: ShardTransactions
) -> Iterator[list[Entry] | JournalBatch | EndTxnMarker]:
    """What counts in one batch: plain entries as a list, those of transactions each by itself."""
    if header.is_control:
        marker = _marker(data, position, header)
        if marker is not None:
            transactions.ended(marker, header.base_offset)
            yield marker
        return
    if term_of(header.producer_id, header.producer_epoch) is None:
        return
    entries = _entries(data, position, header)
    if all(entry[0] < OURS for entry in entries):
        yield entries
        return
    for entry in entries:
        if entry[0][:2] == PENDING_KEY:
            pending = _pending(entry, header, transactions)
            if pending is not None:
                yield pending
        elif entry[0] != CLAIM_KEY:
            yield [entry]


def _pending(entry: Entry, header: RecordBatchHeader, transactions: ShardTransactions) -> JournalBatch | None:
    """A pending offset as the coordinator takes it; None if it was removed, or came too late."""
    key, value = entry
    try:
        if value is None:
            transactions.removed(key)
            return None
        committed = decode_pending_value(value)
        found = transactions.wrote(key, committed)
    except MalformedMessage as error:
        raise StorageDamaged(
            f"a pending offset at offset {header.base_offset} cannot be read: {error}"
        ) from None
    if found is None:
        return None
    producer = found.producer_id, committed.producer_epoch
    return JournalBatch([(found.offset_key, committed.offset_value)], producer)


def _headers(data: bytes, offset: int) -> Iterator[tuple[RecordBatchHeader, int]]:
    """Each batch that ends behind `offset`, and where it begins in `data`."""
    position = 0
    while position + HEADER_BYTES <= len(data):
        header = decode_header(data, position)
        end = position + header.size
        if end > len(data):
            return  # the rest comes with the next fetch
        if header.next_offset > offset:
            yield header, position
        position = end


def _marker(data: bytes, position: int, header: RecordBatchHeader) -> EndTxnMarker | None:
    """The end of a transaction in a control batch; None if it is something else."""
    try:
        return decode_marker(memoryview(data)[position : position + header.size])
    except CorruptRecordBatch as error:
        raise _corrupt(header, error) from None


def _entries(data: bytes, position: int, header: RecordBatchHeader) -> list[Entry]:
    end = position + header.size
    try:
        if header.compression is Compression.NONE and not header.is_transactional:
            plain = keys_and_values(data, position + HEADER_BYTES, end, header.records_count)
            if plain is not None:
                return plain
        batch = next(batches(memoryview(data)[position:end]))
        return [(each.key, each.value) for each in records(batch) if each.key is not None]
    except CorruptRecordBatch as error:
        raise _corrupt(header, error) from None


def _claim(value: bytes, header: RecordBatchHeader) -> ShardClaim:
    try:
        return decode_claim(value)
    except MalformedMessage as error:
        raise StorageDamaged(f"the claim at offset {header.base_offset} cannot be read: {error}") from None


def _corrupt(header: RecordBatchHeader, error: CorruptRecordBatch) -> StorageDamaged:
    return StorageDamaged(f"the batch at offset {header.base_offset} is corrupt: {error}")
