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

LARGEST_UVARINT = 1 << 14
"""Two bytes hold any smaller value. Longer texts are not read; Kafka accepts at most 4096 bytes of metadata.
"""


def let(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use(value)`, with `value` computed once: within a lambda Spark does not merge equal expressions."""
    return fn.element_at(fn.transform(fn.array(value), use), 1)


def _digits(data: Column, at: Position, size: int, to_base: int) -> Column:
    start = fn.lit(at) if isinstance(at, int) else at
    return fn.conv(fn.hex(data.substr((start + 1).cast("int"), fn.lit(size))), 16, to_base).cast("long")


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


def uvarint(data: Column, at: Position) -> tuple[Column, Column]:
    """The value, and the number of bytes it takes. A value of LARGEST_UVARINT or more is null."""
    first, second = (_digits(data, at + index, 1, 10).cast("int") for index in range(2))
    is_short = first < 0x80
    long = fn.when(second < 0x80, first - 0x80 + second * 0x80)
    return fn.when(is_short, first).otherwise(long), fn.when(is_short, 1).otherwise(2)
