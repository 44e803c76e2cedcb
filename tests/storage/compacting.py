"""Batches to compact, waiting for a pass, and what it left."""

from typing import Any

from kshim.storage.embedded import EmbeddedStore
from kshim.storage.interfaces import Compaction
from schemas.records.batch import (
    Record,
    batches,
    crc32c,
    decode_header,
    encode,
    records,
)
from tests.storage.reactor import Reactor

DAY_MS = 24 * 60 * 60 * 1000
DEFAULTS = Compaction()


def await_passes(store: EmbeddedStore, reactor: Reactor) -> None:
    """Wait until no pass is running."""
    while any(partition.is_compacting for partition in store.log._partitions.values()):
        reactor.turn()


def stored_batches(store: EmbeddedStore, partition_no: int = 1, max_bytes: int = 10**6) -> list[memoryview]:
    """All batches in the order in which a consumer reads them from offset 0; each must be whole, with the
    right CRC."""
    found: list[memoryview] = []
    offset = 0
    while data := store.log.read(partition_no, offset, max_bytes):
        for batch in batches(data):
            header = decode_header(batch)
            assert crc32c(batch[21:]) == header.crc
            assert header.next_offset > offset
            offset = header.next_offset
            found.append(batch)
    assert offset == store.log.offsets(partition_no).high_watermark
    return found


def stored(store: EmbeddedStore, partition_no: int = 1) -> list[Record]:
    return [record for batch in stored_batches(store, partition_no) for record in records(batch)]


def last_values(found: list[Record]) -> dict[bytes | None, bytes]:
    values: dict[bytes | None, bytes] = {}
    for record in found:
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
    return values


def one(key: bytes, value: bytes | None, timestamp_ms: int = 0, **more: Any) -> bytes:
    return encode([Record(0, timestamp_ms, key, value)], **more)


def fill(store: EmbeddedStore, reactor: Reactor, count: int = 30, now_ms: int = 0) -> None:
    """Append filler records, enough for another pass."""
    for number in range(count):
        reactor.result(store.log.append(1, one(b"filler", b"%d" % number), now_ms=now_ms))
    await_passes(store, reactor)
