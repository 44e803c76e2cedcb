"""Kafka's wire types as column expressions, which run in the JVM: no Python code runs for a record.

Positions count from 0. A read beyond the end of the data gives a smaller value or null, and from then on the
position stays beyond the end. So a reader that ends exactly at the end has read only existing bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as fn

Position: TypeAlias = Column | int

SHORT, LONG = 2, 3
"""Most bytes of a uvarint that is read: values up to 16,383, and up to 2,097,151. Kafka accepts at most 4096
bytes of metadata in a commit, so SHORT is enough for it.
"""


def let(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use(value)`, with `value` computed once: within a lambda Spark does not merge equal expressions."""
    return fn.element_at(fn.transform(fn.array(value), use), 1)


def _digits(data: Column, at: Position, size: int, to_base: int) -> Column:
    start = fn.lit(at) if isinstance(at, int) else at
    return fn.conv(fn.hex(data.substr((start + 1).cast("int"), fn.lit(size))), 16, to_base).cast("long")


def int8(data: Column, at: Position) -> Column:
    return fn.shiftright(fn.shiftleft(_digits(data, at, 1, 10), 56), 56).cast("int")


def int16(data: Column, at: Position) -> Column:
    return fn.shiftright(fn.shiftleft(_digits(data, at, 2, 10), 48), 48).cast("int")


def int32(data: Column, at: Position) -> Column:
    return fn.shiftright(fn.shiftleft(_digits(data, at, 4, 10), 32), 32).cast("int")


def int64(data: Column, at: Position) -> Column:
    return _digits(data, at, 8, -10)


def text(data: Column, at: Position, size: Column) -> Column:
    """The bytes as a string; bytes that are not UTF-8 are kept as they are."""
    return raw(data, at, size).cast("string")


def raw(data: Column, at: Position, size: Column) -> Column:
    start = fn.lit(at) if isinstance(at, int) else at
    return data.substr((start + 1).cast("int"), size.cast("int"))


def uuid_text(data: Column, at: Position) -> Column:
    """The 16 bytes of a UUID in Kafka's text form."""
    return fn.translate(fn.base64(raw(data, at, fn.lit(16))), "+/", "-_").substr(1, 22)


def uvarint(data: Column, at: Position, most_bytes: int = SHORT) -> tuple[Column, Column]:
    """The value, and the number of bytes it takes. The value is null if it takes more than `most_bytes`."""
    bytes_ = [_digits(data, at + index, 1, 10).cast("int") for index in range(most_bytes)]
    value: Column = fn.lit(None).cast("int")
    size: Column = fn.lit(most_bytes)
    for count in range(most_bytes, 0, -1):
        ends = bytes_[count - 1] < 0x80
        digits = [bytes_[index] % 0x80 * 0x80**index for index in range(count)]
        value = fn.when(ends, sum(digits[1:], digits[0])).otherwise(value)
        size = fn.when(ends, count).otherwise(size)
    return value, size
