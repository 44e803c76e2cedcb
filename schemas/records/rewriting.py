"""Rewrites a stored batch with another codec, or with only some of its records."""

from collections.abc import Callable, Iterable

from schemas.error_code import ErrorCode
from schemas.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    MAX_LONG,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Compression,
    CorruptRecordBatch,
    Record,
    View,
    assemble,
    body_of,
    decode_header,
    encode,
    records_in,
)
from schemas.records.compression import MAX_DECOMPRESSED_BYTES, compress
from schemas.records.record import move_timestamp, split_records

__all__ = ["recompress", "retain"]


def _unwritable(what: str) -> CorruptRecordBatch:
    return CorruptRecordBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"{what} cannot be written", is_whole=True)


def recompress(
    batch: View, codec: Compression, level: int | None = None, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """A produced batch with its records compressed by `codec`. As in Kafka, the offsets of the records become
    consecutive, and the header is made to agree with the records.

    Raises BatchExpandsTooFar. Raises CorruptRecordBatch if the records or their number contradict the header,
    and for batches that Kafka cannot write either: with a timestamp before 1970, a producer id without an
    epoch, or a transaction without a producer id.
    """
    header = decode_header(batch)
    body = body_of(header, batch, max_bytes)
    earliest, latest, is_consecutive = _span(records_in(header, body))
    if earliest < NO_TIMESTAMP:
        raise _unwritable(f"a timestamp of {earliest} ms")
    if header.producer_id != -1 and header.producer_epoch < 0:
        raise _unwritable(f"producer epoch {header.producer_epoch} of producer id {header.producer_id}")
    if header.producer_id == -1 and header.is_transactional:
        raise _unwritable("a transaction without a producer id")
    attributes = header.attributes & TRANSACTIONAL_BIT | codec
    is_usual = attributes & ~COMPRESSION_MASK == header.attributes & ~COMPRESSION_MASK
    if is_usual and is_consecutive:
        changed = header._replace(attributes=attributes, max_timestamp=latest)
        return assemble(changed, compress(codec, body, level))
    return encode(
        (record._replace(offset=index) for index, record in enumerate(records_in(header, body))),
        compression=codec,
        level=level,
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )


def _span(found: Iterable[Record]) -> tuple[int, int, bool]:
    """Return the smallest and the largest timestamp of records, and True if their offsets count up from 0.

    Reads the records one at a time: all of them may be a hundred times the size of their batch.
    """
    earliest, latest, is_consecutive = MAX_LONG, -MAX_LONG, True
    for index, record in enumerate(found):
        earliest, latest = min(earliest, record.timestamp_ms), max(latest, record.timestamp_ms)
        is_consecutive = is_consecutive and record.offset == index
    return earliest, latest, is_consecutive


def retain(
    batch: View,
    is_retained: Callable[[Record], bool],
    delete_horizon_ms: int,
    *,
    gets_horizon: bool = False,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> View:
    """A batch with only the records for which `is_retained` returns True.

    Offsets, producer and sequence numbers stay, so a header without records may be left. If tombstones
    remain, or with `gets_horizon`, the batch gets `delete_horizon_ms`, unless it has a delete horizon already
    (KIP-534). If nothing changes, returns `batch` itself. Raises CorruptRecordBatch if it cannot be decoded,
    and BatchExpandsTooFar.
    """
    header = decode_header(batch)
    body = body_of(header, batch, max_bytes)
    # All records are decoded before they are split, so that every length is checked before it is used.
    found = list(records_in(header, body))
    kept = [pair for pair in zip(found, split_records(body, len(found)), strict=True) if is_retained(pair[0])]
    wants_horizon = gets_horizon or any(record.value is None for record, _ in kept)
    gets_horizon = header.delete_horizon_ms is None and wants_horizon and bool(kept)
    if len(kept) == len(found) and not gets_horizon:
        return batch
    base_timestamp, attributes = header.base_timestamp, header.attributes
    raw: Iterable[bytes] = (data for _, data in kept)
    if gets_horizon:
        attributes, base_timestamp = attributes | DELETE_HORIZON_BIT, delete_horizon_ms
        raw = (move_timestamp(data, header.base_timestamp - delete_horizon_ms) for _, data in kept)
    max_timestamp = header.max_timestamp
    if kept and not attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = max(record.timestamp_ms for record, _ in kept)
    payload = b"".join(raw)
    if kept:
        payload = compress(header.compression, payload)
    else:
        attributes &= ~(COMPRESSION_MASK | DELETE_HORIZON_BIT)
        base_timestamp = NO_TIMESTAMP
    return assemble(
        header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            records_count=len(kept),
        ),
        payload,
    )
