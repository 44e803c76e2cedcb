"""Generates the function that reads one version of a message."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from schemas import message, primitives
from schemas.compiled.text import NO_LIMIT, Text, join, line_of, refuse
from schemas.message import MalformedMessage, T
from schemas.primitives import Construct, java_int

T_co = TypeVar("T_co", covariant=True)


class Decoder(Protocol[T_co]):
    """decode(frame, offset, left) -> (message, offset after it)."""

    def __call__(self, frame: bytes | bytearray, offset: int, left: int = ..., /) -> tuple[T_co, int]: ...


def _varint(frame: bytes, offset: int, bits: int = 32, signed: bool = False) -> tuple[int, int]:
    value = 0
    for shift in range(0, bits, 7):
        byte = frame[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        refuse(f"a varint of more than {(bits + 6) // 7} bytes")
    value &= (1 << bits) - 1
    return (value >> 1) ^ -(value & 1) if signed else value, offset


def _length(frame: bytes, offset: int) -> tuple[int, int]:
    """Read a compact length, which is one more than the length; null is 0 or less."""
    count, offset = _varint(frame, offset)
    return java_int(count - 1) + 1, offset


def _tag_count(frame: bytes, offset: int) -> tuple[int, int]:
    """Read the number of tagged fields that follow. A negative number means none."""
    count, offset = _varint(frame, offset)
    return java_int(count), offset


def _tag(frame: bytes, offset: int) -> tuple[int, int, int]:
    """Read the beginning of a tagged field: its tag, the announced size, and the offset of its value."""
    tag, offset = _varint(frame, offset)
    size, offset = _varint(frame, offset)
    return tag, size, offset


def _unknown_tag(frame: bytes, offset: int, tag: int, size: int) -> tuple[tuple[int, bytes], int]:
    """Read the value of an unknown tagged field. Returns (tag, value), and the offset after it."""
    end = offset + size
    if end > len(frame):
        refuse(f"{size} bytes announced, {len(frame) - offset} left")
    return (tag, bytes(frame[offset:end])), end


def _unknown_tags(frame: bytes, offset: int, count: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    tags = []
    for _ in range(count):
        tag, size, offset = _tag(frame, offset)
        unknown, offset = _unknown_tag(frame, offset, tag, size)
        tags.append(unknown)
    return tuple(tags), offset


_RUNTIME: Final[Mapping[str, object]] = {
    "StructError": struct.error,
    "unpack_from": struct.unpack_from,
    "uuid": primitives.to_uuid,
    "varint": _varint,
    "length": _length,
    "tag_count": _tag_count,
    "read_tag": _tag,
    "unknown_tag": _unknown_tag,
    "unknown_tags": _unknown_tags,
}


class Reading(Text, Generic[T]):
    """Generates decode(frame, offset, left). Numbers stay in `pending` until they are unpacked together."""

    def __init__(self, cls: type[T], entity: primitives.Entity, version: int) -> None:
        header = f"def decode(frame, offset, left={NO_LIMIT}):"
        super().__init__(cls.__name__, entity, version, header, {**_RUNTIME, "explain": self.explain})
        self.pending: list[tuple[str, str, str]] = []  # (target, format letter, path)
        self.readers: dict[type, Callable[[Construct, str, str], None]] = {
            primitives.Fixed: self.fixed,
            primitives.Uuid: self.uuid,
            primitives.Varint: self.varint,
            primitives.String: self.string,
            primitives.Bytes: self.bytes,
            primitives.Records: self.bytes,
            primitives.Array: self.array,
            primitives.Nullable: self.nullable,
            primitives.Entity: self.read_entity,
        }

    def compile(self) -> Decoder[T]:
        first = len(self.lines)
        self.line("size = len(frame)")
        value = self.new("value")
        self.read_entity(self.entity, value, "")
        if not any(" size" in line for line in self.lines[first + 1 :]):
            self.lines[first] = ""
        self.line(f"return {value}, offset")
        self.depth = 1
        with self.block("except (StructError, IndexError, ValueError) as failure:"):
            self.line("raise explain(failure, frame, offset) from None")
        found: Decoder[T] = self.finish("decode")
        return found

    def explain(self, failure: BaseException, frame: bytes, offset: int) -> MalformedMessage:
        """The exception for a failure in the generated function: it names the field and the offset."""
        place = self.places[line_of(failure)]
        field, reason = "", str(failure)
        for field, size in place:  # noqa: B007
            if size > len(frame) - offset:
                break
            offset += size
        if isinstance(failure, (IndexError, struct.error)):
            reason = "the bytes end here"
        return MalformedMessage(reason, api=self.name, version=self.version, field=field, offset=offset)

    def read(self, wire: Construct, target: str, path: str) -> None:
        self.readers[type(wire)](wire, target, path)

    def pend(self, letter: str, target: str, path: str) -> None:
        self.pending.append((target, letter, path))

    def flush(self) -> None:
        """Generate one unpack for all pending numbers."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        shape = struct.Struct(">" + "".join(letter for _, letter, _ in pending))
        place = [(path, struct.calcsize(">" + letter)) for _, letter, path in pending]
        targets = ", ".join(target for target, _, _ in pending)
        if shape.format == ">B":
            self.line(f"{targets} = frame[offset]", place)
        else:
            unpack = self.constant("unpack_", shape.unpack_from)
            comma = "," if len(pending) == 1 else ""
            self.line(f"{targets}{comma} = {unpack}(frame, offset)", place)
        self.line(f"offset += {shape.size}")

    def fixed(self, wire: primitives.Fixed, target: str, path: str) -> None:
        self.pend(wire.code, target, path)

    def uuid(self, wire: primitives.Uuid, target: str, path: str) -> None:
        raw = self.new("raw")
        self.pend("16s", raw, path)
        self.flush()
        self.line(f"{target} = uuid({raw})")

    def varint(self, wire: primitives.Varint, target: str, path: str) -> None:
        self.flush()
        self.line(f"{target}, offset = varint(frame, offset, {wire.bits}, {wire.signed})", [(path, 0)])

    def length(self, wire: primitives.Counted, path: str) -> str:
        """Generate the reading of a length into a variable, and return its name. Null is less than 0 or, in
        compact form, less than 1.
        """
        count = self.new("count")
        self.pend("B" if wire.is_compact else wire.plain_length.code, count, path)
        self.flush()
        if wire.is_compact:
            too_long = f"; long_string({count})" if isinstance(wire, primitives.String) else ""
            rest = f"{count}, offset = length(frame, offset - 1){too_long}"
            self.line(f"if {count} > 127: {rest}", [(path, 0)])
        return count

    @contextmanager
    def present(self, wire: primitives.Counted, count: str, target: str, path: str) -> Iterator[None]:
        """Open a block that runs for a value other than null. The code before it assigns or refuses null."""
        place = [(path, 0)]
        low = 1 if wire.is_compact else 0
        if wire.is_nullable:
            with self.block(f"if {count} < {low}:", place):
                self.line(f"{target} = None", place)
            with self.block("else:"):
                yield
        else:
            self.line(f"if {count} < {low}: raise Refused('null, where null is not allowed')", place)
            yield

    def cut(self, wire: primitives.Counted, target: str, path: str, expression: str) -> None:
        """Generate: read a length, then assign `expression`, in which {} stands for the slice of the
        content.
        """
        count = self.length(wire, path)
        with self.present(wire, count, target, path):
            end, place = self.new("end"), [(path, 0)]
            self.line(f"{end} = offset + {count}" + (" - 1" if wire.is_compact else ""))
            left = f"f'{{{end} - offset}} bytes announced, {{size - offset}} left'"
            self.line(f"if {end} > size: raise Refused({left})", place)
            self.line(f"{target} = {expression.format(f'offset:{end}')}", place)
            self.line(f"offset = {end}")

    def string(self, wire: primitives.String, target: str, path: str) -> None:
        self.cut(wire, target, path, f"frame[{{}}].decode('utf-8', '{primitives.NO_UTF8}')")

    def bytes(self, wire: primitives.Bytes, target: str, path: str) -> None:
        is_view = isinstance(wire, primitives.Records)
        self.cut(wire, target, path, "memoryview(frame)[{}]" if is_view else "bytes(frame[{}])")

    def array(self, wire: primitives.Array, target: str, path: str) -> None:
        count = self.length(wire, path)
        with self.present(wire, count, target, path):
            if wire.is_compact:
                self.line(f"{count} -= 1")
            smallest = max(wire.element.smallest, 1)
            left = f"f'{{{count}}} elements announced, {{size - offset}} bytes left'"
            self.line(f"if {count} * {smallest} > size - offset: raise Refused({left})", [(path, 0)])
            self.spend(count)
            if isinstance(wire.element, primitives.Fixed):
                code = wire.element.code
                self.line(f"{target} = unpack_from(f'>{{{count}}}{code}', frame, offset)", [(path, 0)])
                self.line(f"offset += {count} * {wire.element.smallest}")
                return
            items, item = self.new("items"), self.new("item")
            self.line(f"{items} = []")
            with self.block(f"for _ in range({count}):"):
                self.read(wire.element, item, path)
                self.flush()
                self.line(f"{items}.append({item})")
            self.line(f"{target} = tuple({items})")

    def nullable(self, wire: primitives.Nullable, target: str, path: str) -> None:
        mark, value = self.new("mark"), self.new("value")
        self.pend("b", mark, path)
        self.flush()
        with self.block(f"if {mark} < 0:"):
            self.line(f"{value} = None")
        with self.block("else:"):
            self.read_entity(wire.element, value, path)
            self.flush()
        self.line(f"{target} = {value}")

    def read_entity(self, wire: primitives.Entity, target: str, path: str) -> None:
        """Generate: fill a mutable twin, then set its class to the frozen one; see schemas.message."""
        self.flush()
        definition = message.definition(wire.entity)
        value = self.new("value")
        self.line(f"{value} = {self.constant('Twin_', definition.twin)}()")
        for name, each in wire.fields:
            self.read(each, f"{value}.{name}", join(path, name))
        read = {name for name, _ in wire.fields}
        absent = [(each.name, each.default) for each in definition.fields if each.name not in read]
        tags = self.new("tags")
        if wire.tagged:
            self.pend("B", tags, join(path, "tagged fields"))
        self.flush()
        for name, default in absent:
            self.line(f"{value}.{name} = {self.literal(default)}")
        self.line(f"{value}.unknown_tags = ()")
        if wire.tagged:
            with self.block(f"if {tags}:"):
                self.tagged(wire.tagged, value, tags, path)
        self.line(f"{value}.__class__ = {self.constant('Class_', wire.entity)}")
        self.line(f"{target} = {value}")

    def tagged(self, wire: primitives.TaggedFields, value: str, count: str, path: str) -> None:
        place = [(join(path, "tagged fields"), 0)]
        self.line(f"if {count} > 127: {count}, offset = tag_count(frame, offset - 1)", place)
        with self.block(f"if {count} > 0:"):
            self.spend(count)
        if not wire.known and not wire.of_others:
            self.line(f"{value}.unknown_tags, offset = unknown_tags(frame, offset, {count})", place)
            return
        tag, size = self.new("tag"), self.new("size")
        unknown, tags = self.new("unknown"), self.new("tags")
        self.line(f"{tags} = []")
        with self.block(f"for _ in range({count}):"):
            self.line(f"{tag}, {size}, offset = read_tag(frame, offset)", place)
            for number, (name, known, _) in wire.known.items():
                with self.block(f"if {tag} == {number}:"):
                    self.read(known, f"{value}.{name}", join(path, name))
                    self.flush()
                    self.line("continue")
            for number in sorted(wire.of_others):
                wrong = f"Refused('tag {number} belongs to another version')"
                self.line(f"if {tag} == {number}: raise {wrong}", place)
            self.line(f"{unknown}, offset = unknown_tag(frame, offset, {tag}, {size})", place)
            self.line(f"{tags}.append({unknown})")
        self.line(f"{value}.unknown_tags = tuple({tags})")
