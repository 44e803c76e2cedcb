"""Record batches, as clients produce them and as the log keeps them.

The first byte of an input says how much of the batch behind it is made right before it is read, because
chance hits neither a CRC nor a compressed body. MEND_LENGTH and MEND_CRC do that of the header, COMPRESS
compresses what follows the header by the codec that the header names, and JOIN makes records of what stands
between SEPARATORs, each behind its length, and counts them in the header.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Any

from schemas.primitives import encode_uvarint
from schemas.records.batch import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    CRC_AT,
    HEADER_BYTES,
    LOG_OVERHEAD,
    Compression,
    CorruptRecordBatch,
    Record,
    RecordBatchHeader,
    batches,
    check_records,
    crc32c,
    decode_header,
    encode,
    is_transactional,
    patch,
    patch_in_place,
    records,
    sole_batch,
    validate,
)
from schemas.records.compression import compress
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker, encode_marker
from schemas.records.record import split_records
from schemas.records.rewriting import recompress, retain
from tests.fuzz.target import Target

MEND_LENGTH, MEND_CRC, COMPRESS, JOIN = 1, 2, 4, 8
SEPARATOR = b"\xf5\xf6"
BASE_OFFSET_BYTES = 8
LAST_OFFSET_DELTA_AT, RECORDS_COUNT_AT = 23, 57
INT32, INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
HORIZON_MS = 1_700_000_000_000


def batch_of(data: bytes) -> bytes:
    """The bytes that an input stands for."""
    mends, batch = (data[0] if data else 0), bytearray(data[1:])
    if len(batch) < HEADER_BYTES:
        return bytes(batch)
    if mends & JOIN:
        contents = bytes(batch[HEADER_BYTES:]).split(SEPARATOR)
        batch[HEADER_BYTES:] = b"".join(encode_uvarint(2 * len(it)) + it for it in contents)
        struct.pack_into(">i", batch, LAST_OFFSET_DELTA_AT, len(contents) - 1)
        struct.pack_into(">i", batch, RECORDS_COUNT_AT, len(contents))
    codec = batch[ATTRIBUTES_AT + 1] & COMPRESSION_MASK
    if mends & COMPRESS and 0 < codec <= Compression.ZSTD:
        batch[HEADER_BYTES:] = compress(Compression(codec), batch[HEADER_BYTES:])
    if mends & MEND_LENGTH:
        struct.pack_into(">i", batch, BASE_OFFSET_BYTES, len(batch) - LOG_OVERHEAD)
    if mends & MEND_CRC:
        struct.pack_into(">I", batch, CRC_AT, crc32c(batch[ATTRIBUTES_AT:]))
    return bytes(batch)


def _apart(batch: bytes) -> bytes:
    """An uncompressed batch for JOIN."""
    contents = split_records(batch[HEADER_BYTES:], decode_header(batch).records_count)
    # The length of each of these records takes one byte or two.
    return batch[:HEADER_BYTES] + SEPARATOR.join(it[1:] if len(it) < 65 else it[2:] for it in contents)


def _seeds(chance: Random) -> Iterable[bytes]:
    some = [
        Record(0, 1_700_000_000_000, b"key", b"value", (("h", b"x"), ("ü", None), ("", b""))),
        Record(1, 1_700_000_000_500, None, b""),
        Record(2, 1_699_999_999_000, b"", None),
        Record(3, 1_700_000_000_001, None, b"a" * 70),
    ]
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0}
    for codec in Compression:
        plain_body = bytearray(encode(some))
        plain_body[ATTRIBUTES_AT + 1] |= codec
        yield bytes([MEND_LENGTH | MEND_CRC | COMPRESS]) + plain_body
        yield bytes([MEND_LENGTH | MEND_CRC | COMPRESS | JOIN]) + _apart(bytes(plain_body))
        yield bytes([MEND_LENGTH | MEND_CRC]) + encode(some, compression=codec, **producer)
        yield bytes([MEND_CRC]) + encode(some[:1], compression=codec, is_transactional=True, **producer)
    for timestamp_ms in (2**63 - 2, -(2**63) + 2, -1, 0):
        ends = [Record(n, timestamp_ms, b"k", b"v" * n, (("h", b""),) * n) for n in range(2)]
        yield bytes([MEND_LENGTH | MEND_CRC | JOIN]) + _apart(encode(ends, **producer))
    yield b"\0" + encode(some) + encode(some[:2])
    yield b"\3" + encode([Record(0, -1, None, None)])
    yield b"\3" + encode([Record(n, 5, b"k%d" % (n % 9), b"v" if n % 3 else None) for n in range(80)])
    yield b"\3" + encode([], last_offset_delta=3, **producer)
    yield b"\0" + patch(encode(some), 100, 3)
    yield b"\3" + encode_marker(EndTxnMarker(7, 1, True, 3, 1_700_000_000_000))
    yield b"\3" + encode_marker(EndTxnMarker(7, 1, False, 3, 1_700_000_000_000))
    kafka_snappy = bytearray(encode(some, compression=Compression.SNAPPY))
    yield bytes([MEND_LENGTH | MEND_CRC]) + kafka_snappy[:HEADER_BYTES] + kafka_snappy[HEADER_BYTES + 20 :]


_WORDS = (
    b"\x7f" + b"\xff" * 7,
    b"\x80" + b"\0" * 7,
    b"\xff" * 9 + b"\x01",  # -2**63 as a zigzag varint
    b"\xfe" + b"\xff" * 8 + b"\x01",  # 2**63 - 1
    b"\xff" * 9 + b"\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\x0f",
    b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1",
    b"\x1f\x8b\x08",
    b"\x04\x22\x4d\x18",
    b"\x28\xb5\x2f\xfd",
)


def _target(name: str, read: Callable[[bytes], Any], check: Callable[[bytes, Any], None]) -> Target:
    return Target(name, read, (CorruptRecordBatch,), check, _seeds, _WORDS)


# ---- cut apart


def _read_batches(data: bytes) -> list[tuple[RecordBatchHeader, EndTxnMarker | None]]:
    return [
        (decode_header(batch), decode_marker(batch)) for batch in batches(batch_of(data)) if len(batch) > 60
    ]


def _check_batches(data: bytes, found: Any) -> None:
    view = batch_of(data)
    whole: list[bytes] = []
    with suppress(CorruptRecordBatch):
        whole.extend(map(bytes, batches(view)))
    assert view.startswith(b"".join(whole))
    for batch in whole:
        is_transactional(batch)
        if len(batch) < HEADER_BYTES:
            continue
        header = decode_header(batch)
        assert header.size == len(batch)
        moved = patch(batch, 2**62, 9)
        in_place = bytearray(batch)
        patch_in_place(in_place, 0, 2**62, 9)
        assert in_place == moved
        assert decode_header(moved) == header._replace(base_offset=2**62, partition_leader_epoch=9)


BATCHES = _target("batches", _read_batches, _check_batches)


# ---- produced


def _produced(data: bytes) -> tuple[RecordBatchHeader, memoryview]:
    batch = sole_batch(batch_of(data))
    header = validate(batch)
    check_records(header, batch)
    return header, batch


def _check_produced(data: bytes, found: tuple[RecordBatchHeader, memoryview] | None) -> None:
    if found is None:
        return
    header, batch = found
    assert header.size == len(batch) == len(bytes(batch))
    assert header.records_count > 0
    assert [bytes(it) for it in batches(batch)] == [bytes(batch)]
    assert validate(patch(batch, 0, 7)).crc == header.crc


PRODUCED = _target("produced", _produced, _check_produced)


# ---- decoded


def _records(data: bytes) -> tuple[memoryview, list[Record]]:
    batch = sole_batch(batch_of(data))
    return batch, list(records(batch))


def _check_records(data: bytes, found: tuple[memoryview, list[Record]] | None) -> None:
    if found is None:
        return
    batch, some = found
    header = decode_header(batch)
    assert len(some) == header.records_count
    check_records(header, batch)
    for record in some:
        assert record.timestamp_ms in INT64, record
        assert record.offset - header.base_offset in INT32, record
    deltas = [record.timestamp_ms - some[0].timestamp_ms for record in some]
    if min(deltas, default=0) in INT64 and max(deltas, default=0) in INT64:
        written = encode(some, base_offset=header.base_offset)
        assert list(records(written)) == some
        assert encode(records(written), base_offset=header.base_offset) == written


RECORDS = _target("records", _records, _check_records)


# ---- changed


def _recompressed(data: bytes) -> list[bytes]:
    _, batch = _produced(data)
    return [recompress(batch, codec) for codec in Compression]


def _check_recompressed(data: bytes, found: list[bytes] | None) -> None:
    if found is None:
        return
    batch = sole_batch(batch_of(data))
    before = validate(batch)
    some = [record._replace(offset=index) for index, record in enumerate(records(batch))]
    for codec, written in zip(Compression, found, strict=True):
        header = validate(written)
        assert header.compression is codec
        assert header.records_count == before.records_count
        assert list(records(written)) == some
        assert header.max_timestamp == max(record.timestamp_ms for record in some)


RECOMPRESSED = _target("recompressed", _recompressed, _check_recompressed)


def _is_retained(record: Record) -> bool:
    return bool(len(record.key or b"") % 2 or record.offset % 3 == 1)


def _retained(data: bytes) -> tuple[memoryview, list[Any]]:
    _, batch = _produced(data)
    kept = retain(batch, _is_retained, HORIZON_MS)
    again = retain(kept, _is_retained, HORIZON_MS + 1)
    none = retain(batch, lambda _: False, HORIZON_MS)
    every = retain(batch, lambda _: True, HORIZON_MS, gets_horizon=True)
    return batch, [kept, again, none, every]


def _check_retained(data: bytes, found: tuple[memoryview, list[Any]] | None) -> None:
    if found is None:
        return
    batch, (kept, again, none, every) = found
    some = list(records(batch))
    left = [record for record in some if _is_retained(record)]
    assert list(records(kept)) == left
    assert bytes(again) == bytes(kept)
    assert list(records(none)) == []
    assert list(records(every)) == some
    for it in (kept, none, every):
        header = decode_header(it)
        assert header.last_offset_delta == decode_header(batch).last_offset_delta
        assert header.crc == crc32c(memoryview(it)[ATTRIBUTES_AT:])


RETAINED = _target("retained", _retained, _check_retained)
