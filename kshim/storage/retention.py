"""Finds the oldest records that must be removed, by their age (retention.ms) or their size (retention.bytes).

The unit is the chunk, as Kafka's is the segment. A chunk is removed when its youngest record is too old, or
when retention.bytes are left without it. Pure. Works in steps, because a log may be long.
"""

from collections.abc import Callable, Generator, Iterator, Sequence

from kshim.storage.chunk import Chunk, Seek, first_since
from kshim.storage.interfaces import Retention
from schemas.records.batch import NO_TIMESTAMP, batches, decode_header

Sizes = Callable[[int], Iterator[Sequence[tuple[int, int]]]]
"""Takes an offset; returns (last offset, bytes) of each chunk from that offset on, some chunks at a time."""


def expired(
    seek: Seek, sizes: Sizes, start: int, end: int, retention: Retention, now_ms: int
) -> Generator[None, None, int]:
    """Find the new log start offset of a log from `start` to `end`. Yields after each step."""
    if retention.retention_ms >= 0:
        start = yield from _expired_by_time(seek, start, end, now_ms - retention.retention_ms)
    if retention.retention_bytes >= 0:
        start = yield from _expired_by_size(sizes, start, retention.retention_bytes)
    return start


def run(looking: Generator[None, None, int]) -> int:
    """Run all steps at once, and return the result."""
    while True:
        try:
            next(looking)
        except StopIteration as done:
            return int(done.value)


def _expired_by_time(seek: Seek, start: int, end: int, horizon_ms: int) -> Generator[None, None, int]:
    since = first_since(seek, start, end, horizon_ms)
    last = seek(since - 1) if since > start else None
    if last is not None and last.max_timestamp_so_far > NO_TIMESTAMP:  # else their age is not known
        start = since
    yield
    # Later chunks may only seem young: their max_timestamp_so_far may be the timestamp of a removed record.
    while start < end and (chunk := seek(start)) and NO_TIMESTAMP < _largest_timestamp(chunk) < horizon_ms:
        start = chunk.last_offset + 1
        yield
    return start


def _largest_timestamp(chunk: Chunk) -> int:
    return max(decode_header(batch).max_timestamp for batch in batches(chunk.batches))


def _expired_by_size(sizes: Sizes, start: int, retention_bytes: int) -> Generator[None, None, int]:
    excess = -retention_bytes
    for some in sizes(start):
        excess += sum(size for _, size in some)
        yield
    for some in sizes(start):
        for last_offset, size in some:
            if size > excess:
                return start
            excess -= size
            start = last_offset + 1
        yield
    return start
