"""Generates the function that counts the bytes of one version of a message without writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from schemas import primitives
from schemas.compiled.text import NO_LIMIT, Text, join
from schemas.compiled.writing import write_element
from schemas.mapped import Written
from schemas.primitives import Construct

Measurer = Callable[..., "Size"]


class Size(NamedTuple):
    """The size of a message."""

    bytes: int
    elements: int
    """The number of elements of all arrays together."""


def _uvarint_bytes(value: int) -> int:
    return max(1, (value.bit_length() + 6) // 7)


def _varint_bytes(wire: primitives.Varint, value: int) -> int:
    return _uvarint_bytes(value << 1 ^ value >> wire.bits - 1 if wire.signed else value)


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _tags_bytes(tags: Iterable[tuple[int, int]]) -> int:
    """The number of bytes of a section of tagged fields. tags: (tag, number of bytes) of each field."""
    known = dict(tags)
    fields = (_uvarint_bytes(tag) + _uvarint_bytes(count) + count for tag, count in known.items())
    return _uvarint_bytes(len(known)) + sum(fields)


_RUNTIME: Final[Mapping[str, object]] = {
    "Size": Size,
    "Written": Written,
    "text_bytes": _text_bytes,
    "uvarint_bytes": _uvarint_bytes,
    "tags_bytes": _tags_bytes,
}


class Measuring(Text):
    """Generates measure(value, left, left_bytes). Sizes that are the same for every value are summed in
    `fixed_bytes` until a loop or a branch begins.
    """

    def __init__(self, name: str, entity: primitives.Entity, version: int) -> None:
        header = f"def measure(value, left={NO_LIMIT}, left_bytes={NO_LIMIT}):"
        super().__init__(name, entity, version, header, {**_RUNTIME, "explain": self.explain})
        self.fixed_bytes = 0
        self.writers: dict[type, Callable[[Construct, str, str], None]] = {
            primitives.Fixed: lambda wire, value, path: self.fixed(wire.length),
            primitives.Uuid: lambda wire, value, path: self.fixed(wire.smallest),
            primitives.Varint: self.varint,
            primitives.String: partial(self.content, measure="text_bytes"),
            primitives.Bytes: partial(self.content, measure="len"),
            primitives.Records: partial(self.content, measure="len"),
            primitives.Array: self.array,
            primitives.Nullable: self.nullable,
            primitives.Entity: self.measure_entity,
        }

    def compile(self) -> Measurer:
        """Generate the function, which returns a Size."""
        self.line("most, most_bytes = left, left_bytes")
        self.measure_entity(self.entity, "value", "")
        self.flush()
        self.line("return Size(most_bytes - left_bytes, most - left)")
        self.depth = 1
        with self.block("except (ValueError, TypeError, AttributeError) as failure:"):
            self.line("raise explain(failure) from None")
        found: Measurer = self.finish("measure")
        return found

    def explain(self, failure: BaseException) -> ValueError:
        """The exception for a failure in the generated function. It names no field; the encoder would."""
        return ValueError(f"{self.name} v{self.version}: {failure}")

    def measure(self, wire: Construct, value: str, path: str) -> None:
        self.writers[type(wire)](wire, value, path)

    def fixed(self, size: int) -> None:
        self.fixed_bytes += size

    def flush(self) -> None:
        """Generate a count of `fixed_bytes`, before a loop or a branch begins."""
        if self.fixed_bytes:
            self.spend_bytes(str(self.fixed_bytes))
            self.fixed_bytes = 0

    def varint(self, wire: primitives.Varint, value: str, path: str) -> None:
        self.spend_bytes(f"{self.constant('varint_', partial(_varint_bytes, wire))}({value})")

    def length(self, wire: primitives.Counted, count: str) -> str:
        """An expression for the number of bytes of a length; "0" if `fixed_bytes` has counted them."""
        if wire.is_compact:
            return f"(1 if {count} < 127 else uvarint_bytes({count} + 1))"
        self.fixed(wire.plain_length.length)
        return "0"

    def content(self, wire: primitives.Counted, value: str, path: str, *, measure: str) -> None:
        """Count a string or bytes. measure: the function that returns the number of bytes."""
        item, count = self.new("item"), self.new("count")
        self.line(f"{item} = {value}")
        if wire.is_nullable:
            self.line(f"{count} = 0 if {item} is None else {measure}({item})")
        else:
            self.line(f"{count} = {measure}({item})")
        length = self.length(wire, count)
        self.spend_bytes(count if length == "0" else f"{count} + {length}")

    def array(self, wire: primitives.Array, value: str, path: str) -> None:
        items, count = self.new("items"), self.new("count")
        self.line(f"{items} = {value}")
        if wire.is_nullable:
            self.line(f"if {items} is None: {items} = ()")
        self.line(f"{count} = len({items})")
        if (length := self.length(wire, count)) != "0":
            self.spend_bytes(length)
        if isinstance(wire.element, primitives.Fixed):
            self.spend(count)
            self.spend_bytes(f"{count} * {wire.element.length}")
            return
        self.flush()
        if not isinstance(wire.element, primitives.Entity):
            self.loop(wire, items, path)
            return
        name = f"{self.name}.{path}"
        write = self.constant("write_", partial(write_element, name, wire.element, self.version))
        with self.block(f"if {items}.__class__ is Written:"):
            self.spend_bytes(f"len({items}.written({write}, left))")
        with self.block("else:"):
            self.loop(wire, items, path)

    def loop(self, wire: primitives.Array, items: str, path: str) -> None:
        """Count the elements one by one."""
        self.spend(f"len({items})")
        item = self.new("item")
        with self.block(f"for {item} in {items}:"):
            self.measure(wire.element, item, path)
            self.flush()

    def nullable(self, wire: primitives.Nullable, value: str, path: str) -> None:
        item = self.new("item")
        self.line(f"{item} = {value}")
        self.fixed(1)
        self.flush()
        with self.block(f"if {item} is not None:"):
            self.measure_entity(wire.element, item, path)
            self.flush()

    def measure_entity(self, wire: primitives.Entity, value: str, path: str) -> None:
        if value.count("."):
            value, long = self.new("item"), value
            self.line(f"{value} = {long}")
        for name, each in wire.fields:
            self.measure(each, f"{value}.{name}", join(path, name))
        if wire.tagged:
            self.flush()
            tags = self.new("tags")
            self.line(f"{tags} = [(tag, len(data)) for tag, data in {value}.unknown_tags]")
            for tag, (name, each, default) in sorted(wire.tagged.known.items()):
                self.tagged(tag, each, f"{value}.{name}", default, tags, join(path, name))
            self.spend_bytes(f"(tags_bytes({tags}) if {tags} else 1)")

    def tagged(self, tag: int, wire: Construct, value: str, default: object, tags: str, path: str) -> None:
        """Add the size of a known field to `tags`, unless the field equals its default. `tags_bytes` counts
        it later.
        """
        item, before, usual = self.new("item"), self.new("before"), self.literal(default)
        self.line(f"{item} = {value}")
        test = f"is not {usual} and {item} != {usual}" if usual.startswith("default_") else f"!= {usual}"
        with self.block(f"if {item} {test}:"):
            self.line(f"{before} = left_bytes")
            self.measure(wire, item, path)
            self.flush()
            self.line(f"{tags}.append(({tag}, {before} - left_bytes)); left_bytes = {before}")
