"""Records whose numbers are beyond what a client writes: read as Kafka and Java's clients read them."""

import struct

import pytest
from crc32c import crc32c

from schemas.error_code import ErrorCode
from schemas.records.batch import Compression, CorruptRecordBatch, Record, encode, records
from schemas.records.record import decode_records
from schemas.records.rewriting import recompress, retain

LATEST_MS = 2**63 - 1
CRC_AT, ATTRIBUTES_AT, BASE_TIMESTAMP_AT = 17, 21, 27


def beyond() -> bytes:
    """A batch whose second timestamp is 9 ms beyond 64 bits."""
    batch = bytearray(encode([Record(0, 0, b"k", b"v"), Record(1, 9, b"k", b"v")]))
    struct.pack_into(">q", batch, BASE_TIMESTAMP_AT, LATEST_MS)
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[ATTRIBUTES_AT:]))
    return bytes(batch)


def test_a_timestamp_beyond_64_bits_overflows() -> None:
    assert [record.timestamp_ms for record in records(beyond())] == [LATEST_MS, -(2**63) + 8]


def test_a_batch_with_such_a_timestamp_is_not_recompressed() -> None:
    with pytest.raises(CorruptRecordBatch, match="a timestamp of -9223372036854775800 ms") as refused:
        recompress(beyond(), Compression.GZIP)
    assert refused.value.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_batch_with_such_a_timestamp_is_compacted() -> None:
    left = retain(beyond(), lambda record: record.offset == 1, 0)
    assert [(record.offset, record.timestamp_ms) for record in records(left)] == [(1, -(2**63) + 8)]


@pytest.mark.parametrize(
    ("last_byte", "delta"), [(b"\x01", -(2**63)), (b"\x7f", -(2**63)), (b"\x7e", -(2**62))]
)
def test_bits_beyond_64_are_dropped(last_byte: bytes, delta: int) -> None:
    content = b"\0" + b"\xff" * 9 + last_byte + b"\0\1\1\0"
    (record,) = decode_records(bytes([len(content) * 2]) + content, 1, 0, 0, None)
    assert record.timestamp_ms == delta


def test_an_offset_delta_beyond_32_bits_is_refused() -> None:
    content = b"\0\0" + b"\x80\x80\x80\x80\x20" + b"\1\1\0"
    with pytest.raises(CorruptRecordBatch, match="an offset delta of 4294967296") as refused:
        list(decode_records(bytes([len(content) * 2]) + content, 1, 0, 0, None))
    assert refused.value.error_code is ErrorCode.INVALID_RECORD
