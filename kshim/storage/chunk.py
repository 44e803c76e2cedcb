"""A partition's log is a sequence of chunks, each of one or more whole record batches, in offset order.

A store keeps chunks in an ordered map by their last offset. So the chunk that holds an offset is the first
one that ends at or after it. Each chunk has the largest timestamp of the partition so far, which never falls
from one chunk to the next. So the first record since a point in time is found by bisection, without an index.

All functions are pure. A store passes them `seek`, which returns the first chunk whose last offset is at
least the one given, or the chunks from that one on.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kshim.storage.producers import Produced
from schemas.records.batch import (
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    RecordBatchHeader,
    TimestampType,
    batches,
    decode_header,
    patch_in_place,
    set_max_timestamp,
)
from schemas.records.end_txn_marker import decode_marker


class Chunk(NamedTuple):
    """Record batches that are stored together."""

    last_offset: int
    max_timestamp_so_far: int
    """The largest timestamp in the partition up to the end of this chunk, -1 if there is none.

    It is too large if compaction has removed the record with that timestamp and has not reached this chunk
    yet.
    """
    batches: bytes | memoryview

    @property
    def first_offset(self) -> int:
        return int.from_bytes(self.batches[:8])

    def size_from(self, offset: int) -> int:
        """The bytes of the batches from the one that holds `offset` on."""
        is_cut = self.first_offset < offset
        return len(_from_offset(self.batches, offset) if is_cut else self.batches)


Seek = Callable[[int], Chunk | None]


class Placed(NamedTuple):
    """Batches with their final offsets, timestamps and leader epoch."""

    batches: bytearray | memoryview
    next_offset: int
    max_timestamp: int
    produced: list[Produced]
    """The batches that have a producer id."""


def place(
    batch: bytes | memoryview,
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int | None,
    header: RecordBatchHeader | None = None,
) -> Placed:
    """Number the records of the batches from `base_offset` on. A writable memoryview is changed in place;
    anything else is copied.

    The batches get the topic's timestamp type: LogAppendTime with `log_append_time_ms`, or CreateTime if that
    is None. header: of the batch, if there is one and its header is known.
    """
    timestamp_type = (
        TimestampType.CREATE_TIME if log_append_time_ms is None else TimestampType.LOG_APPEND_TIME
    )
    placed = batch if isinstance(batch, memoryview) and not batch.readonly else bytearray(batch)
    at, max_timestamp = 0, NO_TIMESTAMP
    produced: list[Produced] = []
    while at < len(placed):
        known = header or decode_header(placed, at)
        patch_in_place(placed, at, base_offset, leader_epoch)
        timestamp_ms = known.max_timestamp if log_append_time_ms is None else log_append_time_ms
        if timestamp_type or known.attributes & LOG_APPEND_TIME_BIT:
            set_max_timestamp(placed, at, timestamp_type, timestamp_ms)
        max_timestamp = max(max_timestamp, timestamp_ms)
        if known.producer_id >= 0:
            marker = decode_marker(memoryview(placed)[at:]) if known.is_control else None
            produced.append(Produced(known, base_offset, timestamp_ms, marker))
        base_offset += known.last_offset_delta + 1
        at += LOG_OVERHEAD + known.batch_length
    assert at == len(placed), "only whole batches can be appended"
    return Placed(placed, base_offset, max_timestamp, produced)


def placed(some: memoryview) -> Placed:
    """Read batches that have their offsets."""
    next_offset, max_timestamp = 0, NO_TIMESTAMP
    produced: list[Produced] = []
    for batch in batches(some):
        header = decode_header(batch)
        max_timestamp = max(max_timestamp, header.max_timestamp)
        if header.producer_id >= 0:
            marker = decode_marker(batch) if header.is_control else None
            produced.append(Produced(header, header.base_offset, header.max_timestamp, marker))
        next_offset = header.next_offset
    return Placed(some, next_offset, max_timestamp, produced)


def read(chunks: Iterable[Chunk], offset: int, end: int, max_bytes: int, min_one: bool) -> bytes:
    """Whole batches from the one that holds `offset` up to `end`, at most `max_bytes`.

    With `min_one` the first batch is returned even if it is larger. Only the first chunk may be cut at
    `max_bytes`; every other chunk is returned whole or not at all, so that the next read begins at the start
    of a chunk and need not search in it.
    """
    parts: list[bytes | memoryview] = []
    left = max_bytes
    for chunk in chunks:
        part = chunk.batches
        if chunk.last_offset >= end:
            part = _before(part, end)
        if not parts and chunk.first_offset < offset:
            part = _from_offset(part, offset)
        if len(part) > left:
            if not parts:
                parts.append(_at_most(part, left, min_one))
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _from_offset(part: bytes | memoryview, offset: int) -> memoryview:
    position = 0
    for batch in batches(part):
        if decode_header(batch).last_offset >= offset:
            break
        position += len(batch)
    return memoryview(part)[position:]


def _before(part: bytes | memoryview, end: int) -> memoryview:
    size = 0
    for batch in batches(part):
        if decode_header(batch).last_offset >= end:
            break
        size += len(batch)
    return memoryview(part)[:size]


def _at_most(part: bytes | memoryview, max_bytes: int, min_one: bool) -> memoryview:
    size = 0
    for batch in batches(part):
        if size + len(batch) > max_bytes and not (min_one and size == 0):
            break
        size += len(batch)
    return memoryview(part)[:size]


def first_since(seek: Seek, start: int, end: int, timestamp_ms: int) -> int:
    """An offset in the first chunk whose max_timestamp_so_far is at least `timestamp_ms`, else `end`."""
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        chunk = seek(middle)
        assert chunk is not None, f"no chunk holds offset {middle}, which is below {end}"
        if chunk.max_timestamp_so_far >= timestamp_ms:
            high = max(low, min(middle, chunk.first_offset))
        else:
            low = chunk.last_offset + 1
    return low
