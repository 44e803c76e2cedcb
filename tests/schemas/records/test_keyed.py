"""Keys and values that are read in haste are those that the reference decodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.records.batch import Compression, Record, encode
from schemas.records.keyed import read_plain
from schemas.records.record import CorruptRecordBatch, decode_records, encode_record, keys_and_values

CONTENT = st.one_of(st.none(), st.binary(max_size=3), st.integers(60, 70).map(bytes), st.just(bytes(9000)))
DELTA = st.sampled_from([0, 1, -1, 63, 64, 9000, 2**31 - 1, 2**31])
HEADERS = st.sampled_from([(), (), (), (("name", b"x"),)])
RECORDS = st.lists(st.builds(Record, DELTA, DELTA, CONTENT, CONTENT, HEADERS), max_size=5)


def body_of(some: list[Record]) -> bytes:
    body = bytearray()
    for record in some:
        encode_record(body, record, record.timestamp_ms, record.offset)
    return bytes(body)


def reference(body: bytes, count: int) -> list[tuple[bytes, bytes | None]] | None:
    try:
        some = list(decode_records(body, count, 0, 0, None))
    except CorruptRecordBatch:
        return None
    if any(record.headers for record in some):
        return None
    return [(record.key, record.value) for record in some if record.key is not None]


@given(RECORDS, st.binary(max_size=3))
def test_keys_and_values(some: list[Record], around: bytes) -> None:
    body = body_of(some)
    data = around + body + around
    found = keys_and_values(data, len(around), len(around) + len(body), len(some))
    assert found == reference(body, len(some))
    assert found is None or len(found) == sum(record.key is not None for record in some)


def test_an_offset_that_cannot_be() -> None:
    body = body_of([Record(2**31, 0, b"key", b"value")])
    assert reference(body, 1) is None
    assert keys_and_values(body, 0, len(body), 1) is None


@given(RECORDS.filter(bool), st.data())
def test_a_byte_that_was_changed(some: list[Record], data: st.DataObject) -> None:
    body = bytearray(body_of(some))
    body[data.draw(st.integers(0, min(len(body), 40) - 1))] = data.draw(st.integers(0, 255))
    found = keys_and_values(bytes(body), 0, len(body), len(some))
    assert found is None or found == reference(bytes(body), len(some))


@given(st.binary(max_size=60), st.integers(0, 5))
def test_any_bytes(body: bytes, count: int) -> None:
    found = keys_and_values(body, 0, len(body), count)
    assert found is None or found == reference(body, count)


def plain(offset: int, *keys: bytes) -> bytes:
    some = (Record(offset + delta, 1, key, b"value") for delta, key in enumerate(keys))
    return encode(some, base_offset=offset)


def test_plain_batches_are_read_together() -> None:
    data = plain(5, b"a", b"b") + plain(9, b"c") + plain(10, b"d")
    records, position, next_offset = read_plain(data, 0, 3)
    assert [key for key, _ in records] == [b"a", b"b", b"c"]
    assert (position, next_offset) == (len(data) - len(plain(10, b"d")), 10)
    assert read_plain(data, position, 3) == ([(b"d", b"value")], len(data), 11)
    assert read_plain(data, len(data), 3) == ([], len(data), None)


@pytest.mark.parametrize(
    "other",
    [
        encode([Record(6, 1, b"k", b"v")], base_offset=6, compression=Compression.GZIP),
        encode([Record(6, 1, b"k", b"v")], base_offset=6, producer_id=1, is_transactional=True),
        encode([Record(6, 1, b"k", b"v")], base_offset=6, producer_id=1, is_control=True),
        encode([Record(6, 1, b"k", b"v", (("name", b""),))], base_offset=6),
        plain(6, b"k")[:-1],
        plain(6, b"k")[:50],
    ],
)
def test_another_batch_ends_it(other: bytes) -> None:
    first = plain(5, b"a")
    assert read_plain(first + other, 0, 9) == ([(b"a", b"value")], len(first), 6)
    assert read_plain(first + other, len(first), 9) == ([], len(first), None)


def test_a_batch_that_lost_its_records_moves_the_offset() -> None:
    assert read_plain(encode([], base_offset=4, last_offset_delta=3), 0, 9) == ([], 61, 8)
