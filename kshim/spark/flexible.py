"""Flexible messages (KIP-482) as column expressions, put together from readers of their fields.

A reader gives struct<at, value> for the bytes and the position at which its value begins: the position behind
the value, which is null if the bytes are damaged, and the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as fn

from kshim.spark.binary import LONG, int8, int32, let, raw, uuid_text, uvarint


class Reader(NamedTuple):
    kind: str
    """The type of the value, as Spark writes it."""
    read: Callable[[Column, Column], Column]
    """Called with the bytes and a position."""


def beginning_of(reader: Reader, data: Column) -> Column:
    """The value behind a version of two bytes, whatever follows; null if the bytes end before."""
    return let(
        reader.read(data, fn.lit(2)), lambda it: fn.when(it["at"] <= fn.octet_length(data), it["value"])
    )


def up_to(count: Column) -> Column:
    """[1, …, count]; [] for 0, null for null."""
    return fn.when(count == 0, fn.array().cast("array<int>")).when(count > 0, fn.sequence(fn.lit(1), count))


def after_tags(data: Column, at: Column) -> Column:
    """The position after the tagged fields at `at`; null if the bytes there are not tagged fields."""
    count, count_bytes = uvarint(data, at)
    return _after(data, (at + count_bytes).cast("int"), count)


def _after(data: Column, first: Column, count: Column) -> Column:
    """The position after `count` tagged fields, of which the first is at `first`."""

    def skip(position: Column) -> Column:
        _, tag_bytes = uvarint(data, position)
        return let(position + tag_bytes, behind)

    def behind(position: Column) -> Column:
        size, size_bytes = uvarint(data, position)
        return (position + size_bytes + size).cast("int")

    tags = fn.when(count * 2 <= fn.octet_length(data) - first, count)  # a field takes at least two bytes
    return fn.when(count == 0, first).otherwise(
        fn.aggregate(up_to(tags), first, lambda position, _: skip(position))
    )


def _read(at: Column, value: Column) -> Column:
    return fn.struct(at.cast("int").alias("at"), value.alias("value"))


def _number(kind: str, size: int, decoded: Callable[[Column, Column], Column]) -> Reader:
    return Reader(kind, lambda data, at: _read(at + size, decoded(data, at).cast(kind)))


def _sized(kind: str, *, is_nullable: bool = False) -> Reader:
    def read(data: Column, at: Column) -> Column:
        length, length_bytes = uvarint(data, at, LONG)
        size = fn.struct((length - 1).alias("size"), (at + length_bytes).alias("at"))
        return let(size, lambda it: content(data, it["size"], it["at"]))

    def content(data: Column, size: Column, at: Column) -> Column:
        least = -1 if is_nullable else 0
        end = fn.when(size >= least, at + fn.greatest(size, fn.lit(0)))
        return _read(end, fn.when(size >= 0, raw(data, at, size)).cast(kind))

    return Reader(kind, read)


INT8 = _number("int", 1, int8)
INT32 = _number("int", 4, int32)
UUID = _number("string", 16, uuid_text)
TEXT = _sized("string")
NULLABLE_TEXT = _sized("string", is_nullable=True)


def int32s() -> Reader:
    """A reader of an array of numbers, which are read at once."""

    def read(data: Column, at: Column) -> Column:
        length, length_bytes = uvarint(data, at, LONG)
        return let(
            fn.struct((length - 1).alias("count"), (at + length_bytes).alias("at")),
            lambda it: content(data, it["count"], it["at"]),
        )

    def content(data: Column, count: Column, at: Column) -> Column:
        fits = (count >= 0) & (count * 4 <= fn.octet_length(data) - at)
        numbers = fn.transform(up_to(fn.when(fits, count)), lambda index: int32(data, at + (index - 1) * 4))
        return _read(fn.when(fits, at + count * 4), numbers)

    return Reader("array<int>", read)


def array(element: Reader) -> Reader:
    """A reader of an array of any elements."""
    kind = f"array<{element.kind}>"

    def read(data: Column, at: Column) -> Column:
        length, length_bytes = uvarint(data, at, LONG)
        return let(
            fn.struct((length - 1).alias("count"), (at + length_bytes).cast("int").alias("at")),
            lambda it: content(data, it["count"], it["at"]),
        )

    def content(data: Column, count: Column, at: Column) -> Column:
        fitting = fn.when(count <= fn.octet_length(data) - at, count)  # an element takes at least one byte
        return fn.aggregate(
            up_to(fitting),
            _read(at, fn.array().cast(kind)),
            lambda so_far, _: let(element.read(data, so_far["at"]), lambda it: with_one(so_far, it)),
        )

    def with_one(so_far: Column, it: Column) -> Column:
        return _read(it["at"], fn.concat(so_far["value"], fn.array(it["value"])))

    return Reader(kind, read)


def skipped_texts() -> Reader:
    """A reader that goes behind an array of texts."""

    def behind(data: Column, at: Column) -> Column:
        length, length_bytes = uvarint(data, at, LONG)
        return fn.when(length > 0, (at + length_bytes + length - 1).cast("int"))

    def read(data: Column, at: Column) -> Column:
        length, length_bytes = uvarint(data, at, LONG)
        head = fn.struct((length - 1).alias("count"), (at + length_bytes).cast("int").alias("first"))
        return let(head, lambda it: content(data, it["count"], it["first"]))

    def content(data: Column, count: Column, first: Column) -> Column:
        texts = up_to(fn.when(count <= fn.octet_length(data) - first, count))  # a text takes a byte or more
        return _read(fn.aggregate(texts, first, lambda at, _: behind(data, at)), fn.lit(None))

    return Reader("void", read)


def entity(*parts: tuple[str, Reader]) -> Reader:
    """A reader of fields that follow each other, as a struct. A field without a name is left out."""
    kind = ",".join(f"{name}:{reader.kind}" for name, reader in parts if name)

    def read(data: Column, at: Column) -> Column:
        def follow(number: int, position: Column, values: tuple[Column, ...]) -> Column:
            if number == len(parts):
                return _read(position, fn.struct(*values))
            name, reader = parts[number]
            return let(
                reader.read(data, position),
                lambda it: follow(
                    number + 1, it["at"], (*values, it["value"].alias(name)) if name else values
                ),
            )

        return follow(0, at, ())

    return Reader(f"struct<{kind}>", read)


def _tags(data: Column, at: Column) -> Column:
    return _read(after_tags(data, at), fn.lit(None))


TAGS = Reader("void", _tags)
"""Tagged fields that are skipped."""
