"""Markers, compared with those of Kafka's MemoryRecords.withEndTransactionMarker."""

import pytest

from schemas.records.batch import CorruptRecordBatch, Record, decode_header, encode, patch
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker, encode_marker

MARKER = EndTxnMarker(
    producer_id=4711, producer_epoch=7, committed=True, coordinator_epoch=3, timestamp_ms=1700000000123
)
JAVA = {
    MARKER._replace(committed=False): bytes.fromhex(
        "000000000000000000000042ffffffff02e100a8770030000000000000018bcfe5687b0000018bcfe5687b"
        "00000000000012670007ffffffff000000012000000008000000000c00000000000300"
    ),
    MARKER: bytes.fromhex(
        "000000000000000000000042ffffffff02153e7e3f0030000000000000018bcfe5687b0000018bcfe5687b"
        "00000000000012670007ffffffff000000012000000008000000010c00000000000300"
    ),
}


def control(key: bytes | None, value: bytes | None) -> bytes:
    return encode([Record(0, 1, key, value)], producer_id=1, producer_epoch=0, is_control=True)


@pytest.mark.parametrize("marker", list(JAVA))
def test_writes_and_reads_the_same_bytes(marker: EndTxnMarker) -> None:
    assert encode_marker(marker) == JAVA[marker]
    assert decode_marker(JAVA[marker]) == marker
    assert decode_marker(memoryview(patch(JAVA[marker], 800, 5))) == marker


def test_is_a_control_batch_without_sequence() -> None:
    header = decode_header(encode_marker(MARKER))
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)


@pytest.mark.parametrize(
    "batch",
    [
        encode([Record(0, 1, b"\0\0\0\x01", b"\0\0\0\0\0\x03")], producer_id=1, is_transactional=True),
        control(b"\0\0\0\x02", b""),  # a leader change, as in Kafka's metadata log
        encode([], producer_id=1, is_transactional=True, is_control=True),
    ],
    ids=["ordinary records", "another kind", "emptied"],
)
def test_what_ends_no_transaction(batch: bytes) -> None:
    assert decode_marker(batch) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"", b""), (b"\0\0\0", b""), (b"\0\0\0\0", None), (b"\0\0\0\0", b"\0\0\0\0\0")],
)
def test_what_cannot_be_read(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptRecordBatch):
        decode_marker(control(key, value))


def test_a_later_version_may_say_more() -> None:
    assert decode_marker(control(b"\0\x01\0\x01more", b"\0\x01\0\0\0\x09more")) == EndTxnMarker(
        producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=9, timestamp_ms=1
    )
