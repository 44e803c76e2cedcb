"""What a shard's log holds: the batches of its leaders, their claims, and the records to be loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kshim.storage.interfaces import JournalBatch, StorageDamaged
from kshim.upstream.shards.takeover import Batch
from kshim.upstream.shards.tenure import Entry, Outgoing
from kshim.upstream.shards.terms import term_of
from schemas.internal_topics.shard_claim import KEY, ShardClaim, decode_claim
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
from schemas.records.record import keys_and_values

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
    for header, entries in _decoded(data, offset):
        term = term_of(header.producer_id, header.producer_epoch)
        claims = [value for key, value in entries if key == KEY and value is not None]
        yield Batch(header.next_offset, term, _claim(claims[-1], header) if claims else None)


def loaded(fetched: Iterable[bytes]) -> Iterator[JournalBatch]:
    """The records that count in all that was fetched, oldest first: without claims, and without the batches
    of anybody who is no kshim. Raises StorageDamaged.
    """
    gathered: list[Entry] = []
    for data in fetched:
        for header, entries in _decoded(data, 0):
            if term_of(header.producer_id, header.producer_epoch) is not None:
                gathered += (entry for entry in entries if entry[0] != KEY)
            if len(gathered) >= LOAD_RECORDS:
                yield JournalBatch(gathered)
                gathered = []
    if gathered:
        yield JournalBatch(gathered)


def _decoded(data: bytes, offset: int) -> Iterator[tuple[RecordBatchHeader, list[Entry]]]:
    """Each batch that ends behind `offset`, and its keys and values. Raises StorageDamaged."""
    position = 0
    while position + HEADER_BYTES <= len(data):
        header = decode_header(data, position)
        end = position + header.size
        if end > len(data):
            return  # the rest comes with the next fetch
        if header.next_offset > offset and not header.is_control:
            yield header, _entries(data, position, end, header)
        position = end


def _entries(data: bytes, position: int, end: int, header: RecordBatchHeader) -> list[Entry]:
    try:
        if header.compression is Compression.NONE and not header.is_transactional:
            plain = keys_and_values(data, position + HEADER_BYTES, end, header.records_count)
            if plain is not None:
                return plain
        batch = next(batches(memoryview(data)[position:end]))
        return [(each.key, each.value) for each in records(batch) if each.key is not None]
    except CorruptRecordBatch as error:
        raise StorageDamaged(f"the batch at offset {header.base_offset} is corrupt: {error}") from None


def _claim(value: bytes, header: RecordBatchHeader) -> ShardClaim:
    try:
        return decode_claim(value)
    except MalformedMessage as error:
        raise StorageDamaged(f"the claim at offset {header.base_offset} cannot be read: {error}") from None
