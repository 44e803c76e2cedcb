"""Reads a shard's log: leaders' batches, their claims, ends of transactions, records to load."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from uuid import UUID

from kshim.storage.interfaces import JournalBatch, StorageDamaged
from kshim.upstream.shards.takeover import LONGEST_LEASE_MS, Batch
from kshim.upstream.shards.tenure import Entry, Outgoing
from kshim.upstream.shards.terms import Terms, term_of
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

logger = logging.getLogger(__name__)

UNKNOWN_CLAIM = ShardClaim(claim_id=UUID(int=0), host="", port=0, lease_ms=LONGEST_LEASE_MS)
"""Stands for an unreadable claim, e.g. of a later version. Its owner may have the longest lease."""
OURS = b"K"
"""The first byte of keys that Kafka's __consumer_offsets does not have."""
LOAD_RECORDS = 500
"""About how many records are loaded as one entry, in about a millisecond."""


def encode_batch(batch: Outgoing, now_ms: int) -> memoryview:
    """Encode a batch to be sent."""
    return encode_entries(
        batch.entries,
        now_ms,
        producer_id=batch.term.producer_id,
        producer_epoch=batch.term.producer_epoch,
        base_sequence=batch.base_sequence,
    ).data


def read_batches(data: bytes, offset: int) -> Iterator[Batch]:
    """Yield the whole batches of a fetch from `offset`. A batch that cannot be read is a finding.

    Raises StorageDamaged if a batch's length cannot be known.
    """
    for header, position in _headers(data, offset):
        try:
            yield _batch(data, position, header)
        except StorageDamaged as error:
            term = None if header.is_control else term_of(header.producer_id, header.producer_epoch)
            yield Batch(header.next_offset, term, finding=f"{error}; it is skipped", is_damaged=True)


def _batch(data: bytes, position: int, header: RecordBatchHeader) -> Batch:
    """Read one batch. Raises StorageDamaged."""
    if header.is_control:
        return Batch(header.next_offset, None, marker=_marker(data, position, header))
    term = term_of(header.producer_id, header.producer_epoch)
    if term is None:
        finding = (
            f"somebody who is no kshim has written at offset {header.base_offset}, as producer "
            f"{header.producer_id}; it counts for nothing"
        )
        return Batch(header.next_offset, None, finding=finding)
    entries = _entries(data, position, header)
    claims = [value for key, value in entries if key == CLAIM_KEY and value is not None]
    if not claims:
        return Batch(header.next_offset, term)
    try:
        return Batch(header.next_offset, term, decode_claim(claims[-1]))
    except MalformedMessage as error:
        finding = f"the claim at offset {header.base_offset} cannot be read: {error}"
        return Batch(header.next_offset, term, UNKNOWN_CLAIM, finding=finding)


def loaded(
    fetched: Iterable[bytes], transactions: ShardTransactions
) -> Iterator[JournalBatch | EndTxnMarker]:
    """Yield what has to be loaded from all fetches, oldest first: leaders' records without claims, and the
    ends of transactions. Unreadable batches are left out. `transactions` notes pending offsets and ends.
    """
    terms = Terms()
    gathered: list[Entry] = []
    for data in fetched:
        for header, position in _headers(data, 0):
            for each in _in_batch(data, position, header, terms, transactions):
                if isinstance(each, list):
                    gathered += each
                    continue
                if gathered:
                    yield JournalBatch(gathered, skips_unreadable=True)
                    gathered = []
                yield each
            if len(gathered) >= LOAD_RECORDS:
                yield JournalBatch(gathered, skips_unreadable=True)
                gathered = []
    if gathered:
        yield JournalBatch(gathered, skips_unreadable=True)


def _in_batch(
    data: bytes,
    position: int,
    header: RecordBatchHeader,
    terms: Terms,
    transactions: ShardTransactions,
) -> Iterator[list[Entry] | JournalBatch | EndTxnMarker]:
    """Yield what has to be loaded from one batch: plain entries as a list, pending offsets and ends one by
    one. An unreadable batch is left out: the takeover has reported it.
    """
    try:
        if header.is_control:
            marker = _marker(data, position, header)
            if marker is not None:
                transactions.ended(marker, header.base_offset)
                yield marker
            return
        if not terms.takes(term_of(header.producer_id, header.producer_epoch)):
            return
        entries = _entries(data, position, header)
    except StorageDamaged:
        return
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
    """Return a pending offset as an entry; None if it was removed, is late, or cannot be read."""
    key, value = entry
    try:
        if value is None:
            transactions.removed(key)
            return None
        committed = decode_pending_value(value)
        found = transactions.wrote(key, committed)
    except MalformedMessage as error:
        logger.error("skipped a pending offset at offset %d: %s", header.base_offset, error)
        return None
    if found is None:
        return None
    producer = found.producer_id, committed.producer_epoch
    return JournalBatch([(found.offset_key, committed.offset_value)], producer, skips_unreadable=True)


def _headers(data: bytes, offset: int) -> Iterator[tuple[RecordBatchHeader, int]]:
    """Yield each batch that ends behind `offset`, with its position in `data`. Raises StorageDamaged."""
    position = 0
    while position + HEADER_BYTES <= len(data):
        header = decode_header(data, position)
        if header.size < HEADER_BYTES:
            raise StorageDamaged(f"at offset {offset} or behind it a batch has {header.size} bytes")
        end = position + header.size
        if end > len(data):
            return  # the rest comes with the next fetch
        if header.next_offset > offset:
            yield header, position
        position = end


def _marker(data: bytes, position: int, header: RecordBatchHeader) -> EndTxnMarker | None:
    """Return the transaction's end in a control batch; None if it is another control record."""
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


def _corrupt(header: RecordBatchHeader, error: CorruptRecordBatch) -> StorageDamaged:
    return StorageDamaged(f"the batch at offset {header.base_offset} is corrupt: {error}")
