"""The quick count of records by their lengths gives the same as a slow one, varint by varint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.error_code import ErrorCode
from schemas.records.record import CorruptRecordBatch, Record, check_lengths, encode_record

SIZES = st.one_of(st.integers(0, 200), st.sampled_from([10, 55, 56, 57, 58, 8183, 8184, 8185, 20_000]))
STRETCHES = st.lists(st.tuples(SIZES, st.integers(1, 70)), min_size=1, max_size=4)


def body_of(sizes: list[int]) -> bytes:
    """A body of records whose values have these sizes."""
    body = bytearray()
    for number, size in enumerate(sizes):
        encode_record(body, Record(number, 0, None, bytes(size)), 0, number)
    return bytes(body)


def fill(body: bytes, count: int) -> bool:
    """True if `count` records fill the body."""
    position = 0
    for _ in range(count):
        rest = shift = 0
        while True:
            if position >= len(body) or shift > 63:
                return False
            byte = body[position]
            rest, shift, position = rest | (byte & 0x7F) << shift, shift + 7, position + 1
            if byte < 0x80:
                break
        if rest & 1 or rest == 0:
            return False
        position += rest >> 1
    return position == len(body)


def found_right(body: bytes, count: int) -> bool:
    try:
        check_lengths(body, count)
    except CorruptRecordBatch as error:
        return (error.error_code, error.is_whole) != (ErrorCode.INVALID_RECORD, True)
    return True


@given(STRETCHES)
def test_records_that_fill_their_batch(stretches: list[tuple[int, int]]) -> None:
    sizes = [size for size, times in stretches for _ in range(times)]
    body = body_of(sizes)
    assert found_right(body, len(sizes))
    for count in (0, 1, len(sizes) - 1, len(sizes) + 1, len(sizes) + 32, 2**31 - 1):
        assert found_right(body, count) == (count == len(sizes))
    assert not found_right(body + b"\0", len(sizes))
    assert not found_right(body[:-1], len(sizes))


@given(
    st.lists(st.tuples(st.sampled_from([5, 55, 58, 60]), st.integers(1, 70)), min_size=1, max_size=3),
    st.data(),
)
def test_a_byte_that_was_changed(stretches: list[tuple[int, int]], data: st.DataObject) -> None:
    sizes = [size for size, times in stretches for _ in range(times)]
    body = bytearray(body_of(sizes))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    assert found_right(bytes(body), len(sizes)) == fill(bytes(body), len(sizes))


@given(st.binary(max_size=300), st.integers(0, 100))
def test_any_bytes(body: bytes, count: int) -> None:
    assert found_right(body, count) == fill(body, count)


@pytest.mark.parametrize("length", [b"\0", b"\1", b"\3", b"\x80\0", b"\x81\1", b"\xff" * 10 + b"\1"])
@pytest.mark.parametrize("count", [1, 31, 32, 33])
def test_lengths_that_cannot_be(length: bytes, count: int) -> None:
    assert not found_right(length * count, count)


@pytest.mark.parametrize("rest", [[], [101] * 40, [100, 60] * 700, [300] * 2500])
def test_long_stretches_of_equal_records(rest: list[int]) -> None:
    sizes = [100] * 3000 + rest
    body = body_of(sizes)
    assert found_right(body, len(sizes))
    assert not found_right(body, len(sizes) - 1)
    assert not found_right(body, len(sizes) + 1)
    body = body[:-150] + bytes([body[-150] ^ 1]) + body[-149:]
    assert found_right(body, len(sizes)) == fill(body, len(sizes))


def test_records_are_counted_in_a_view_as_in_bytes() -> None:
    for sizes in ([1000] * 500, [1000, 300] * 100, [20_000] * 3):
        body = body_of(sizes)
        check_lengths(memoryview(body), len(sizes))
        with pytest.raises(CorruptRecordBatch):
            check_lengths(memoryview(body), len(sizes) + 1)
        with pytest.raises(CorruptRecordBatch):
            check_lengths(memoryview(body)[:-1], len(sizes))


def test_a_block_of_equal_records_is_not_more_than_were_announced() -> None:
    body = body_of([100] * 64)
    assert found_right(body, 64)
    assert not found_right(body, 33)
    assert not found_right(body, 63)
