"""The wire types of the Kafka protocol as Construct subclasses.

A wire type has an `implicit` default, the `smallest` number of bytes of a value, and `compact` and `nullable`
forms. A message names the plain type, and each version picks the form that it needs. No other module of the
project imports construct.

The types write integers big-endian, and strings, bytes, records and arrays as a length and the content. The
length is an int16 for strings and an int32 for the rest, -1 for null. In the compact form (KIP-482) it is an
unsigned varint of length + 1, 0 for null.

The types read all bytes that Apache Kafka reads: every negative length as null, tagged fields in any order, a
known tagged field without a check of its size, and too many bits in a number as Java does.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, BinaryIO, Final, Protocol, Self
from uuid import UUID

import construct
from construct import Construct as Construct

MAX_STRING_BYTES: Final = 0x7FFF  # as in Kafka, this limit counts for compact strings, too
NO_UTF8: Final = "schemas.no_utf8"
"""The name of the error handler with which `bytes.decode` treats bytes that are not UTF-8."""
NIL_UUID: Final = UUID(int=0)

ConstructError = construct.ConstructError
Struct = construct.Struct


class WireType(Protocol):
    """A type that a field of a message may have."""

    @property
    def implicit(self) -> object:
        """The default of a field that declares none."""

    @property
    def smallest(self) -> int:
        """The fewest bytes that a value takes."""

    @property
    def compact(self) -> WireType:
        """The form of this type in flexible versions."""

    @property
    def nullable(self) -> WireType:
        """The form of this type that may also be None."""


@lru_cache(maxsize=1024)
def to_uuid(raw: bytes) -> UUID:
    """The UUID of 16 bytes. It is cached: topic ids come often, and to make one takes a microsecond."""
    return UUID(bytes=raw)


def java_int(value: int) -> int:
    """Wrap a number to a Java int of 32 bits."""
    return (value + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000


def size_left(stream: BinaryIO) -> int:
    """The number of bytes of the stream that have not been read."""
    return int(construct.stream_size(stream) - stream.tell())


def read(stream: BinaryIO, size: int, path: str) -> bytes:
    """Read exactly `size` bytes. Never requests more bytes than the stream has."""
    if size > size_left(stream):
        raise construct.StreamError(f"{size} bytes announced, {size_left(stream)} left", path=path)
    return bytes(stream.read(size))


class Fixed(construct.FormatField):  # type: ignore[misc]
    """A number of a fixed size; `code` is its letter in the `struct` module."""

    def __init__(self, code: str, implicit: object = 0) -> None:
        super().__init__(">", code)
        self.code = code
        self.implicit = implicit
        self.smallest: int = self.length
        self.compact = self

    def _parse(self, stream: BinaryIO, context: object, path: str) -> int:
        number: int = struct.unpack(self.fmtstr, read(stream, self.length, path))[0]
        return number

    @property
    def nullable(self) -> Fixed:
        raise TypeError("a number is never null")


class Uuid(construct.Construct):  # type: ignore[misc]
    """A UUID: 16 bytes, as in RFC 4122. The nil UUID stands for null."""

    implicit = NIL_UUID
    smallest = 16

    def __init__(self) -> None:
        super().__init__()
        self.compact = self

    @property
    def nullable(self) -> Uuid:
        raise TypeError("a uuid is never null; the nil uuid stands for none")

    def _parse(self, stream: BinaryIO, context: object, path: str) -> UUID:
        return to_uuid(read(stream, 16, path))

    def _build(self, obj: UUID, stream: BinaryIO, context: object, path: str) -> UUID:
        stream.write(obj.bytes)
        return obj


class Varint(construct.Construct):  # type: ignore[misc]
    """A varint: seven bits per byte, least significant first; zigzag if signed. Bits above `bits` are
    dropped, and more bytes than `bits` need are refused.
    """

    implicit = 0
    smallest = 1

    def __init__(self, bits: int, signed: bool) -> None:
        super().__init__()
        self.bits = bits
        self.signed = signed
        self.compact = self

    @property
    def nullable(self) -> Varint:
        raise TypeError("a number is never null")

    def _parse(self, stream: BinaryIO, context: object, path: str) -> int:
        value = shift = 0
        while True:
            byte = read(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= self.bits:
                raise construct.IntegerError(f"a varint of more than {(self.bits + 6) // 7} bytes", path=path)
        value &= (1 << self.bits) - 1
        return (value >> 1) ^ -(value & 1) if self.signed else value

    def _build(self, obj: int, stream: BinaryIO, context: object, path: str) -> int:
        low, high = (-(1 << self.bits - 1), 1 << self.bits - 1) if self.signed else (0, 1 << self.bits)
        if not low <= obj < high:
            raise construct.IntegerError(f"{obj} is outside {low}..{high - 1}", path=path)
        stream.write(encode_uvarint(obj << 1 ^ obj >> self.bits - 1 if self.signed else obj))
        return obj


def encode_uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Counted(construct.Construct):  # type: ignore[misc]
    """A length and its content: the common part of strings, bytes, records and arrays."""

    implicit: object
    plain_length: Fixed

    def __init__(self, *, is_compact: bool = False, is_nullable: bool = False) -> None:
        super().__init__()
        self.is_compact = is_compact
        self.is_nullable = is_nullable

    def form(self, **changes: bool) -> Self:
        """A copy of this type with `is_compact` or `is_nullable` changed."""
        return type(self)(**{"is_compact": self.is_compact, "is_nullable": self.is_nullable} | changes)

    @property
    def compact(self) -> Self:
        return self.form(is_compact=True)

    @property
    def nullable(self) -> Self:
        return self.form(is_nullable=True)

    @property
    def smallest(self) -> int:
        return 1 if self.is_compact else self.plain_length.smallest

    def _parse(self, stream: BinaryIO, context: object, path: str) -> object:
        if self.is_compact:
            length = java_int(uvarint._parse(stream, context, path) - 1)
        else:
            length = self.plain_length._parse(stream, context, path)
        if length >= 0:
            return self.parse_content(length, stream, context, path)
        if not self.is_nullable:
            raise construct.RangeError("null, where null is not allowed", path=path)
        return None

    def _build(self, obj: object, stream: BinaryIO, context: object, path: str) -> object:
        if obj is None and not self.is_nullable:
            raise construct.RangeError("None, where null is not allowed", path=path)
        content = None if obj is None else self.content(obj)
        length = -1 if content is None else len(content)
        if self.is_compact:
            uvarint._build(length + 1, stream, context, path)
        else:
            self.plain_length._build(length, stream, context, path)
        if content is not None:
            self.build_content(content, stream, context, path)
        return obj

    def content(self, obj: Any) -> Any:
        """The bytes or elements of a value; their number is the length."""
        return obj

    def parse_content(self, length: int, stream: BinaryIO, context: object, path: str) -> object:
        return read(stream, length, path)

    def build_content(self, content: Any, stream: BinaryIO, context: object, path: str) -> None:
        stream.write(content)


_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def _as_java(error: UnicodeError) -> tuple[str, int]:
    """Replace bytes that are not UTF-8 by U+FFFD, as Java does.

    One U+FFFD stands for the bytes of an incomplete character, for the three bytes of a surrogate, and for
    its first two.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    surrogate = _SURROGATE.match(error.object, error.start)
    return "\N{REPLACEMENT CHARACTER}", surrogate.end() if surrogate else error.end


codecs.register_error(NO_UTF8, _as_java)


def can_be_written(text: str) -> bool:
    """True if a string that was read is short enough to be written again; each U+FFFD has made it longer."""
    return len(text) <= MAX_STRING_BYTES // 4 or len(text.encode()) <= MAX_STRING_BYTES


def compact_string(text: str) -> bytes:
    """A string in compact form. Raises ValueError if it is too long."""
    data = text.encode()
    if len(data) > MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(data)} bytes")
    return encode_uvarint(len(data) + 1) + data


class String(Counted):
    """A string: UTF-8, at most 32767 bytes. As in Kafka, bytes that are not UTF-8 are read as U+FFFD. That
    takes three bytes, so the string may then be too long to be written again.
    """

    implicit = ""

    @property
    def plain_length(self) -> Fixed:  # type: ignore[override]
        return int16

    def content(self, obj: str) -> bytes:
        data = obj.encode()
        if len(data) > MAX_STRING_BYTES:
            raise construct.StringError(f"a string of {len(data)} bytes")
        return data

    def parse_content(self, length: int, stream: BinaryIO, context: object, path: str) -> str:
        if length > MAX_STRING_BYTES:
            raise construct.StringError(f"a string of {length} bytes", path=path)
        return read(stream, length, path).decode("utf-8", NO_UTF8)


class Bytes(Counted):
    """Bytes, which are read as a copy."""

    implicit: object = b""

    @property
    def plain_length(self) -> Fixed:  # type: ignore[override]
        return int32


class Records(Bytes):
    """The bytes of record batches, or None. They are read as a memoryview of the frame, not as a copy."""

    implicit = None

    def __init__(self, *, is_compact: bool = False, is_nullable: bool = True) -> None:
        super().__init__(is_compact=is_compact, is_nullable=is_nullable)

    def parse_content(self, length: int, stream: BinaryIO, context: object, path: str) -> memoryview:
        return memoryview(read(stream, length, path))


class Array(Counted):
    """A tuple of values of one type."""

    implicit = ()

    def __init__(self, element: Any, *, is_compact: bool = False, is_nullable: bool = False) -> None:
        super().__init__(is_compact=is_compact, is_nullable=is_nullable)
        self.element = element

    @property
    def plain_length(self) -> Fixed:  # type: ignore[override]
        return int32

    def form(self, **changes: bool) -> Self:
        now = {"is_compact": self.is_compact, "is_nullable": self.is_nullable}
        return type(self)(self.element, **now | changes)

    def parse_content(self, length: int, stream: BinaryIO, context: object, path: str) -> tuple[object, ...]:
        # An element of no bytes counts as one byte: else a length could announce 2**31 - 1 of them.
        if length * max(self.element.smallest, 1) > size_left(stream):
            reason = f"{length} elements announced, {size_left(stream)} bytes left"
            raise construct.RangeError(reason, path=path)
        return tuple(self.element._parse(stream, context, path) for _ in range(length))

    def build_content(self, content: Iterable[object], stream: BinaryIO, context: object, path: str) -> None:
        for value in content:
            self.element._build(value, stream, context, path)


class Nullable(construct.Construct):  # type: ignore[misc]
    """A nested structure that may be null: an int8, -1 for null or 1, then the structure (KIP-893)."""

    smallest = 1
    implicit = None

    def __init__(self, element: Any) -> None:
        super().__init__()
        self.element = element
        self.compact = self
        self.nullable = self

    def _parse(self, stream: BinaryIO, context: object, path: str) -> object:
        mark = int8._parse(stream, context, path)
        return None if mark < 0 else self.element._parse(stream, context, path)

    def _build(self, obj: object, stream: BinaryIO, context: object, path: str) -> object:
        int8._build(-1 if obj is None else 1, stream, context, path)
        if obj is not None:
            self.element._build(obj, stream, context, path)
        return obj


class TaggedFields(construct.Construct):  # type: ignore[misc]
    """The end of every structure of a flexible version (KIP-482): fields with a number, the tag.

    known: maps a tag to (field name, type, default). of_others: tags of the message's other versions, which
    are refused. A value that equals its default is not written. Unknown tags are kept as (tag, bytes) under
    "unknown_tags" and written back. Tags are written in ascending order, and read in any order. If a tag
    comes twice, its last value counts. A known field ends where its type ends, whatever size was announced.
    """

    smallest = 1

    def __init__(
        self, known: Mapping[int, tuple[str, Construct, object]], of_others: Set[int] = frozenset()
    ) -> None:
        super().__init__()
        self.known = known
        self.of_others = of_others

    def _parse(self, stream: BinaryIO, context: object, path: str) -> dict[str, object]:
        values = {name: default for name, _, default in self.known.values()}
        unknown = []
        for _ in range(java_int(uvarint._parse(stream, context, path))):
            tag = uvarint._parse(stream, context, path)
            size = uvarint._parse(stream, context, path)
            if tag in self.known:
                name, wire, _ = self.known[tag]
                values[name] = wire._parse(stream, context, path)
            elif tag in self.of_others:
                raise construct.RangeError(f"tag {tag} belongs to another version", path=path)
            else:
                unknown.append((tag, read(stream, size, path)))
        return values | {"unknown_tags": tuple(unknown)}

    def _build(self, obj: Mapping[str, Any], stream: BinaryIO, context: object, path: str) -> object:
        tagged = dict(obj["unknown_tags"])
        for tag, (name, wire, default) in self.known.items():
            if obj[name] != default:
                tagged[tag] = wire.build(obj[name])
        uvarint._build(len(tagged), stream, context, path)
        for tag, data in sorted(tagged.items()):
            uvarint._build(tag, stream, context, path)
            uvarint._build(len(data), stream, context, path)
            stream.write(data)
        return obj


class Entity(construct.Struct):  # type: ignore[misc]
    """The fields of one class in one version, in order. Parses bytes to instances, and instances to bytes.

    fields: (name, wire type) of each. The tagged fields of a flexible version come last.
    """

    def __init__(
        self, entity: type[object], fields: Iterable[tuple[str, Construct]], tagged: TaggedFields | None
    ) -> None:
        super().__init__(*(name / wire for name, wire in fields), *(["tagged" / tagged] if tagged else []))
        self.entity = entity
        self.fields = tuple(fields)
        self.tagged = tagged
        self.smallest: int = sum(sub.subcon.smallest for sub in self.subcons)

    def _parse(self, stream: BinaryIO, context: object, path: str) -> object:
        values = super()._parse(stream, context, path)
        del values["_io"]
        tagged = values.pop("tagged", {})
        return self.entity(**values, **tagged)

    def _build(self, obj: object, stream: BinaryIO, context: object, path: str) -> object:
        values = {name: getattr(obj, name) for name, _ in self.fields}
        if self.tagged:
            names = ["unknown_tags", *(name for name, _, _ in self.tagged.known.values())]
            values["tagged"] = {name: getattr(obj, name) for name in names}
        super()._build(values, stream, context, path)
        return obj


boolean: Final = Fixed("?", False)
int8: Final = Fixed("b")
int16: Final = Fixed("h")
int32: Final = Fixed("l")
int64: Final = Fixed("q")
uint16: Final = Fixed("H")
uint32: Final = Fixed("L")
float64: Final = Fixed("d", 0.0)
uuid: Final = Uuid()
varint: Final = Varint(32, signed=True)
varlong: Final = Varint(64, signed=True)
uvarint: Final = Varint(32, signed=False)
string: Final = String()
nullable_string: Final = string.nullable
bytes_: Final = Bytes()
nullable_bytes: Final = bytes_.nullable
records: Final = Records()


def array(element: WireType | type) -> Array:
    """An array of `element`: a wire type or an entity class."""
    return Array(element)


def nullable_array(element: WireType | type) -> Array:
    """An array of `element` that may be null."""
    return Array(element, is_nullable=True)


def nullable(element: type) -> Nullable:
    """A nested structure, given as its entity class, that may be null."""
    return Nullable(element)
