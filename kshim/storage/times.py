"""Finds a record by its time, in steps: the first since a point in time, or that with the largest timestamp.

A header may have a max timestamp that no record has, so a search may read the whole log.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial

from kshim.storage.chunk import Seek, first_since
from kshim.storage.interfaces import Search, Step, StepResult, TimestampOffset
from schemas.records.batch import (
    COMPRESSION_MASK,
    CorruptRecordBatch,
    batches,
    decode_header,
    records,
)

BATCH_COST_US, CHUNK_COST_US = 30, 500
FEW_RECORDS = 1000


def offset_for_time(seek: Seek, start: int, end: int, timestamp_ms: int) -> Search:
    """Find the first record between offsets `start` and `end` whose timestamp is at least `timestamp_ms`."""
    low = first_since(seek, start, end, timestamp_ms)
    while low < end and (chunk := seek(low)) is not None:
        for batch in batches(chunk.batches):
            if decode_header(batch).max_timestamp >= timestamp_ms:
                found = yield Step(_cost_us(batch), partial(_first_since, batch, start, timestamp_ms))
                if isinstance(found, TimestampOffset):
                    return found
        low = chunk.last_offset + 1
        yield Step(CHUNK_COST_US)
    return None


def max_timestamp(seek: Seek, start: int, end: int) -> Search:
    """Find the first record with the largest timestamp between the offsets `start` and `end`."""
    last = seek(end - 1) if start < end else None
    if last is None:
        return None
    found = yield from offset_for_time(seek, start, end, last.max_timestamp_so_far)
    if found is None:  # compaction has removed that record, or the log starts after it
        largest = yield from _largest_timestamp(seek, start, end)
        if largest is not None:
            found = yield from offset_for_time(seek, start, end, largest)
    return found


def _largest_timestamp(seek: Seek, start: int, end: int) -> Generator[Step, StepResult, int | None]:
    """Find the largest timestamp between the offsets `start` and `end`; None if there are no records."""
    largest: int | None = None
    low = start
    while low < end and (chunk := seek(low)) is not None:
        for batch in batches(chunk.batches):
            header = decode_header(batch)
            found: StepResult = header.max_timestamp if header.records_count else None
            if header.base_offset < start:
                found = yield Step(_cost_us(batch), partial(_largest_since, batch, start))
            if isinstance(found, int) and (largest is None or found > largest):
                largest = found
        low = chunk.last_offset + 1
        yield Step(CHUNK_COST_US)
    return largest


def _cost_us(batch: memoryview) -> int:
    """The longest time that decoding may take, in microseconds. A compressed batch may expand to a hundred
    times its size.
    """
    header = decode_header(batch)
    expanded_us = header.size // 10 if header.attributes & COMPRESSION_MASK else 0
    return BATCH_COST_US + header.records_count + expanded_us


def _first_since(batch: memoryview, start: int, timestamp_ms: int) -> TimestampOffset | None:
    epoch = decode_header(batch).partition_leader_epoch
    for offset, record_timestamp_ms in _timestamps(batch):
        if record_timestamp_ms >= timestamp_ms and offset >= start:
            return TimestampOffset(record_timestamp_ms, offset, epoch)
    return None


def _largest_since(batch: memoryview, start: int) -> int | None:
    return max((timestamp_ms for offset, timestamp_ms in _timestamps(batch) if offset >= start), default=None)


def _timestamps(batch: memoryview) -> Iterator[tuple[int, int]]:
    """(offset, timestamp) of each record. A batch that cannot be decoded counts as one record, at its base
    offset and with its max timestamp.
    """
    header = decode_header(batch)
    try:
        if header.records_count <= FEW_RECORDS:
            yield from [(record.offset, record.timestamp_ms) for record in records(batch)]
            return
        for _ in records(batch):  # checked one by one: a list may be many times the size of the batch
            pass
    except CorruptRecordBatch:
        yield header.base_offset, header.max_timestamp
        return
    for record in records(batch):
        yield record.offset, record.timestamp_ms
