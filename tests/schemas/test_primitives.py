"""The wire types, byte by byte, as their constructs read and write them."""

from typing import Any
from uuid import UUID

import pytest

from schemas import primitives
from schemas.primitives import ConstructError, array, nullable_array

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
INT_ARRAY = array(primitives.int32)
MAYBE_ARRAY = nullable_array(primitives.int8)

EXAMPLES = [
    (primitives.boolean, True, "01"),
    (primitives.boolean, False, "00"),
    (primitives.int8, -2, "fe"),
    (primitives.int16, -2, "fffe"),
    (primitives.int32, 258, "00000102"),
    (primitives.int64, -1, "ffffffffffffffff"),
    (primitives.uint16, 65535, "ffff"),
    (primitives.uint32, 2**32 - 1, "ffffffff"),
    (primitives.float64, 1.0, "3ff0000000000000"),
    (primitives.uuid, TOPIC_ID, "00112233445566778899aabbccddeeff"),
    (primitives.uvarint, 0, "00"),
    (primitives.uvarint, 300, "ac02"),
    (primitives.uvarint, 2**32 - 1, "ffffffff0f"),
    (primitives.varint, 0, "00"),
    (primitives.varint, -1, "01"),
    (primitives.varint, 1, "02"),
    (primitives.varint, -(2**31), "ffffffff0f"),
    (primitives.varlong, 2**63 - 1, "feffffffffffffffff01"),
    (primitives.varlong, -(2**63), "ffffffffffffffffff01"),
    (primitives.string, "", "0000"),
    (primitives.string, "ü", "0002c3bc"),
    (primitives.string.compact, "", "01"),
    (primitives.string.compact, "ü", "03c3bc"),
    (primitives.string.compact, "x" * 127, "8001" + "78" * 127),
    (primitives.nullable_string, None, "ffff"),
    (primitives.nullable_string, "a", "000161"),
    (primitives.nullable_string.compact, None, "00"),
    (primitives.bytes_, b"\0", "0000000100"),
    (primitives.bytes_.compact, b"\0", "0200"),
    (primitives.nullable_bytes, None, "ffffffff"),
    (primitives.nullable_bytes.compact, None, "00"),
    (primitives.records, None, "ffffffff"),
    (primitives.records, b"abc", "00000003616263"),
    (primitives.records.compact, b"abc", "04616263"),
    (INT_ARRAY, (), "00000000"),
    (INT_ARRAY, (1, -1), "0000000200000001ffffffff"),
    (INT_ARRAY.compact, (1,), "0200000001"),
    (MAYBE_ARRAY, None, "ffffffff"),
    (MAYBE_ARRAY.compact, None, "00"),
    (array(primitives.string.compact).compact, ("a", ""), "03026101"),
]


@pytest.mark.parametrize(("wire", "value", "data"), EXAMPLES)
def test_a_value_and_its_bytes(wire: Any, value: Any, data: str) -> None:
    assert wire.build(value) == bytes.fromhex(data)
    assert wire.parse(bytes.fromhex(data)) == value


@pytest.mark.parametrize(("wire", "value", "data"), EXAMPLES)
def test_no_beginning_of_a_value_is_a_value(wire: Any, value: Any, data: str) -> None:
    whole = bytes.fromhex(data)
    assert wire.smallest <= len(whole)
    for end in range(len(whole)):
        with pytest.raises(ConstructError):
            wire.parse(whole[:end])


@pytest.mark.parametrize(
    ("wire", "data"),
    [
        (primitives.string, "ffff"),
        (primitives.string, "fffe"),
        (primitives.string.compact, "00"),
        (primitives.string.compact, "818002" + "00" * 32768),
        (primitives.bytes_, "ffffffff"),
        (primitives.bytes_.compact, "00"),
        (INT_ARRAY, "ffffffff"),
        (INT_ARRAY, "00000002" + "00" * 7),
        (array(INT_ARRAY), "00000003" + "00" * 11),
        (INT_ARRAY.compact, "00"),
        (INT_ARRAY.compact, "ffffffff0f" + "00" * 16),
        (MAYBE_ARRAY.compact, "8080808008" + "00" * 16),
        (primitives.uvarint, "808080808000"),
        (primitives.varint, "808080808001"),
        (primitives.varlong, "80" * 10 + "01"),
    ],
)
def test_bytes_that_are_no_value(wire: Any, data: str) -> None:
    with pytest.raises(ConstructError):
        wire.parse(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("wire", "data"),
    [
        (primitives.nullable_string, "fffe"),
        (primitives.nullable_string, "8000"),
        (primitives.nullable_bytes, "fffffffe"),
        (primitives.records, "80000000"),
        (MAYBE_ARRAY, "fffffffe"),
        (MAYBE_ARRAY.compact, "8180808008"),
        (MAYBE_ARRAY.compact, "ffffffff0f"),
    ],
)
def test_any_negative_length_is_null(wire: Any, data: str) -> None:
    assert wire.parse(bytes.fromhex(data)) is None


@pytest.mark.parametrize(
    ("wire", "data", "value"),
    [
        (primitives.uvarint, "ffffffff10", 0x0FFF_FFFF),
        (primitives.varint, "8280808070", 1),
        (primitives.varlong, "ffffffffffffffffff02", -(2**62)),
    ],
)
def test_bits_for_which_a_number_has_no_room_are_lost(wire: Any, data: str, value: int) -> None:
    assert wire.parse(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("ff", "�"),
        ("67 ff 67", "g�g"),
        ("80 80", "��"),
        ("c0 af", "��"),
        ("e2 82", "�"),
        ("e2 82 67", "�g"),
        ("f0 9f 98 67", "�g"),
        ("f5 80", "��"),
        ("ed a0 80", "�"),
        ("ed a0", "�"),
        ("ed a0 67", "�g"),
        ("ed a0 80 ed b0 80", "��"),
        ("ed 9f bf", "\ud7ff"),
        ("ed c0 80", "���"),
    ],
)
def test_what_is_no_utf_8_is_read_as_java_does_it(data: str, text: str) -> None:
    """The expected strings are those of Java 17's `new String(bytes, UTF_8)`."""
    raw = bytes.fromhex(data)
    assert primitives.string.parse(len(raw).to_bytes(2) + raw) == text
    assert primitives.string.compact.parse(bytes([len(raw) + 1]) + raw) == text


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        (primitives.int8, 128),
        (primitives.uint16, -1),
        (primitives.uvarint, -1),
        (primitives.uvarint, 2**32),
        (primitives.varint, 2**31),
        (primitives.string, None),
        (primitives.bytes_, None),
        (INT_ARRAY, None),
        (primitives.string.compact, "x" * 32768),
        (primitives.string, "ü" * 16384),
    ],
)
def test_values_that_cannot_be_written(wire: Any, value: Any) -> None:
    with pytest.raises(ConstructError):
        wire.build(value)


@pytest.mark.parametrize("wire", [primitives.int32, primitives.uuid, primitives.uvarint])
def test_what_is_never_null(wire: Any) -> None:
    with pytest.raises(TypeError, match="never null"):
        _ = wire.nullable


def test_any_byte_but_zero_is_true() -> None:
    assert primitives.boolean.parse(b"\x02") is True


def test_an_element_of_no_bytes_counts_as_one() -> None:
    nothing = array(primitives.Entity(dict, [], None))
    assert nothing.parse(b"\0\0\0\0") == ()
    with pytest.raises(ConstructError, match="2147483647 elements announced, 0 bytes left"):
        nothing.parse(b"\x7f\xff\xff\xff")
