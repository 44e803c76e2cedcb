"""Each version of a message as two straight-line Python functions, written from its construct tree.

`message.struct(cls, version)` is the readable truth; walked once, at the first use of that version, it
becomes the text of a function that reads the same bytes and of one that writes them. Neighbouring numbers,
with the length that follows them, are one `struct.Struct`; strings are cut out in place; loops and fields are
written out. What a line of that text reads or writes is noted beside it, so that an error finds its field
from the line number, and nothing is paid for it until then.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, NoReturn

from schemas import message, primitives
from schemas.message import MalformedMessage
from schemas.primitives import MAX_STRING_BYTES, encode_uvarint, to_uuid

Decoder = Callable[[bytes, int], tuple[Any, int]]
Encoder = Callable[..., bytes]
Place = list[tuple[str, int]]  # what a line reads or writes: paths of fields, and how many bytes each


@cache
def decoder(cls: Any, version: int) -> Decoder:
    """decode(frame, offset) -> (message, offset behind it). Raises MalformedMessage, and nothing else.

    `frame` must be bytes: fields of type `records` are memoryviews of it, all others are copies.
    """
    return _DecoderText(cls, version).compile()


@cache
def encoder(cls: Any, version: int) -> Encoder:
    """encode(message, head=b"") -> head + the message's bytes.

    Raises ValueError, naming the field, for a value that this version cannot carry.
    """
    return _EncoderText(cls, version).compile()


def decode(cls: Callable[..., message.T], version: int, data: bytes | memoryview) -> message.T:
    """The message that fills `data` exactly. Raises MalformedMessage."""
    frame = bytes(data)
    value: message.T
    value, end = decoder(cls, version)(frame, 0)
    if end != len(frame):
        raise overfull(cls, version, frame, end)
    return value


def overfull(cls: Any, version: int, frame: bytes, end: int) -> MalformedMessage:
    """What to raise where a message ends before its frame does."""
    reason = f"{len(frame) - end} bytes too many"
    return MalformedMessage(reason, api=cls.__name__, version=version, offset=end)


def encode(value: Any, version: int) -> bytes:
    """The bytes of a message. Raises ValueError for a value that this version cannot carry."""
    cls: Any = type(value)
    return encoder(cls, version)(value)


# What the written functions call.


class _Refused(ValueError):
    """Why a field cannot be read or written; the caller finds out which one it is."""


def _refuse(reason: str) -> NoReturn:
    raise _Refused(reason)


def _long_uvarint(frame: bytes, offset: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte said that there is more."""
    value = first & 0x7F
    for shift in range(7, 35, 7):
        byte = frame[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        _refuse("a varint of more than 5 bytes")
    return (value, offset) if value >> 32 == 0 else _refuse("a varint of more than 32 bits")


def _varint(frame: bytes, offset: int, bits: int, signed: bool) -> tuple[int, int]:
    value = 0
    for shift in range(0, bits, 7):
        byte = frame[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        _refuse(f"a varint of more than {(bits + 6) // 7} bytes")
    if value >> bits:
        _refuse(f"a varint of more than {bits} bits")
    return (value >> 1) ^ -(value & 1) if signed else value, offset


def _tag(frame: bytes, offset: int, last: int) -> tuple[int, int, int]:
    """A tagged field's number, where its value ends, and where it begins."""
    tag, offset = _varint(frame, offset, 32, False)
    if tag <= last:
        _refuse(f"tag {tag} after tag {last}")
    size, offset = _varint(frame, offset, 32, False)
    if offset + size > len(frame):
        _refuse(f"{size} bytes announced, {len(frame) - offset} left")
    return tag, offset + size, offset


def _unknown_tags(frame: bytes, offset: int, count: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    if count > 0x7F:
        count, offset = _long_uvarint(frame, offset, count)
    tags = []
    last = -1
    for _ in range(count):
        last, end, offset = _tag(frame, offset, last)
        tags.append((last, frame[offset:end]))
        offset = end
    return tuple(tags), offset


def _encode_tags(tags: Iterable[tuple[int, bytes]]) -> bytes:
    known = dict(tags)
    out = [encode_uvarint(len(known))]
    for tag, data in sorted(known.items()):
        out += (encode_uvarint(tag), encode_uvarint(len(data)), data)
    return b"".join(out)


def _long_string(length: int) -> int:
    """Check the compact length of a string, which is one more than it has bytes."""
    return length if length <= MAX_STRING_BYTES + 1 else _refuse(f"a string of {length - 1} bytes")


_RUNTIME: Final[dict[str, Any]] = {
    "Refused": _Refused,
    "StructError": struct.error,
    "unpack_from": struct.unpack_from,
    "pack": struct.pack,
    "uuid": to_uuid,
    "long_uvarint": _long_uvarint,
    "varint": _varint,
    "read_tag": _tag,
    "unknown_tags": _unknown_tags,
    "encode_tags": _encode_tags,
    "uvarint": encode_uvarint,
    "long_string": _long_string,
    "UVARINT": tuple(bytes([value]) for value in range(128)),
}


class _Text:
    """The text of a function while it is being written."""

    def __init__(self, cls: Any, version: int, header: str) -> None:
        self.entity = message.struct(cls, version)
        self.name = cls.__name__
        self.version = version
        self.env = _RUNTIME | {"explain": self.explain}
        self.lines = [header, " try:"]
        self.places: list[Place] = [[], []]
        self.depth = 2
        self.count = 0

    def line(self, text: str, place: Place | None = None) -> None:
        self.lines.append(" " * self.depth + text)
        self.places.append(place or [])

    @contextmanager
    def block(self, text: str, place: Place | None = None) -> Iterator[None]:
        """An indented block under a line that ends with a colon."""
        self.line(text, place)
        self.depth += 1
        yield
        self.depth -= 1

    def new(self, prefix: str) -> str:
        """A variable that no other line uses."""
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, prefix: str, value: Any) -> str:
        """A name for a value that the text cannot spell."""
        name = self.new(prefix)
        self.env[name] = value
        return name

    def literal(self, value: Any) -> str:
        """A default value as text."""
        plain = value is None or value == () or type(value) in (bool, int, str, bytes)
        return repr(value) if plain else self.constant("default_", value)

    def explain(self, *arguments: Any) -> Exception:
        raise NotImplementedError

    def finish(self, function: str) -> Any:
        code = compile("\n".join(self.lines), f"<{self.name} v{self.version} {function}>", "exec")
        exec(code, self.env)
        return self.env[function]


def _line_of(failure: BaseException) -> int:
    """The index, in the text, of the line that failed."""
    assert failure.__traceback__ is not None
    return failure.__traceback__.tb_lineno - 1


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class _DecoderText(_Text):
    """Writes decode(frame, offset). Numbers wait in `pending` until they can be unpacked together."""

    def __init__(self, cls: Any, version: int) -> None:
        super().__init__(cls, version, "def decode(frame, offset):")
        self.pending: list[tuple[str, str, str]] = []  # (target, format letter, path)
        self.readers: dict[type, Callable[[Any, str, str], None]] = {
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

    def compile(self) -> Decoder:
        self.line("size = len(frame)")
        value = self.new("value")
        self.read_entity(self.entity, value, "")
        self.flush()
        self.line(f"return {value}, offset")
        self.depth = 1
        with self.block("except (StructError, IndexError, ValueError) as failure:"):
            self.line("raise explain(failure, frame, offset) from None")
        found: Decoder = self.finish("decode")
        return found

    def explain(self, failure: BaseException, frame: bytes, offset: int) -> MalformedMessage:
        """The exception for what went wrong in the text: which field, where."""
        place = self.places[_line_of(failure)]
        field, reason = "", str(failure)
        for field, size in place:  # noqa: B007
            if size > len(frame) - offset:
                break
            offset += size
        if isinstance(failure, (IndexError, struct.error)):
            reason = "the bytes end here"
        return MalformedMessage(reason, api=self.name, version=self.version, field=field, offset=offset)

    def read(self, wire: Any, target: str, path: str) -> None:
        self.readers[type(wire)](wire, target, path)

    def pend(self, letter: str, target: str, path: str) -> None:
        self.pending.append((target, letter, path))

    def flush(self) -> None:
        """Write what is pending: one unpack for all of it."""
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

    def uuid(self, wire: Any, target: str, path: str) -> None:
        raw = self.new("raw")
        self.pend("16s", raw, path)
        self.flush()
        self.line(f"{target} = uuid({raw})")

    def varint(self, wire: primitives.Varint, target: str, path: str) -> None:
        self.flush()
        self.line(f"{target}, offset = varint(frame, offset, {wire.bits}, {wire.signed})", [(path, 0)])

    def length(self, wire: primitives.Counted, path: str) -> str:
        """Read a length and leave it in a variable: -1 for null, or, in compact form, 0 for null."""
        count = self.new("count")
        self.pend("B" if wire.is_compact else wire.plain_length.code, count, path)
        self.flush()
        if wire.is_compact:
            too_long = f"; long_string({count})" if isinstance(wire, primitives.String) else ""
            rest = f"{count}, offset = long_uvarint(frame, offset, {count}){too_long}"
            self.line(f"if {count} > 127: {rest}", [(path, 0)])
        return count

    @contextmanager
    def present(self, wire: primitives.Counted, count: str, target: str, path: str) -> Iterator[None]:
        """A block for a value that is not null; null is given or refused here."""
        place = [(path, 0)]
        low = 1 if wire.is_compact else 0
        if wire.is_nullable:
            with self.block(f"if {count} < {low}:", place):
                if not wire.is_compact:
                    self.line(f"if {count} < -1: raise Refused(f'a length of {{{count}}}')", place)
                self.line(f"{target} = None", place)
            with self.block("else:"):
                yield
        else:
            null = "'null, where null is not allowed'"
            reason = null if wire.is_compact else f"f'a length of {{{count}}}' if {count} < -1 else {null}"
            self.line(f"if {count} < {low}: raise Refused({reason})", place)
            yield

    def cut(self, wire: primitives.Counted, target: str, path: str, expression: str) -> None:
        """`expression` with SLICE, of the bytes that a length announces."""
        count = self.length(wire, path)
        with self.present(wire, count, target, path):
            end, place = self.new("end"), [(path, 0)]
            self.line(f"{end} = offset + {count}" + (" - 1" if wire.is_compact else ""))
            left = f"f'{{{end} - offset}} bytes announced, {{size - offset}} left'"
            self.line(f"if {end} > size: raise Refused({left})", place)
            self.line(f"{target} = {expression.replace('SLICE', f'[offset:{end}]')}", place)
            self.line(f"offset = {end}")

    def string(self, wire: primitives.String, target: str, path: str) -> None:
        self.cut(wire, target, path, "frame SLICE.decode()".replace(" ", ""))

    def bytes(self, wire: primitives.Bytes, target: str, path: str) -> None:
        is_view = isinstance(wire, primitives.Records)
        self.cut(wire, target, path, "memoryview(frame)SLICE" if is_view else "frameSLICE")

    def array(self, wire: primitives.Array, target: str, path: str) -> None:
        count = self.length(wire, path)
        with self.present(wire, count, target, path):
            if wire.is_compact:
                self.line(f"{count} -= 1")
            smallest = max(wire.element.smallest, 1)
            left = f"f'{{{count}}} elements announced, {{size - offset}} bytes left'"
            self.line(f"if {count} * {smallest} > size - offset: raise Refused({left})", [(path, 0)])
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
        """Fill the mutable twin and let it become the frozen class; see schemas.message."""
        self.flush()
        definition = message.definition(wire.entity)
        value = self.new("value")
        self.line(f"{value} = {self.constant('Twin_', definition.twin)}()")
        for name, each in wire.fields:
            self.read(each, f"{value}.{name}", _join(path, name))
        read = {name for name, _ in wire.fields}
        absent = [(each.name, each.default) for each in definition.fields if each.name not in read]
        tags = self.new("tags")
        if wire.tagged:
            self.pend("B", tags, _join(path, "tagged fields"))
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
        place = [(_join(path, "tagged fields"), 0)]
        if not wire.known:
            self.line(f"{value}.unknown_tags, offset = unknown_tags(frame, offset, {count})", place)
            return
        self.line(f"if {count} > 127: {count}, offset = long_uvarint(frame, offset, {count})", place)
        tag, end, unknown = self.new("tag"), self.new("end"), self.new("unknown")
        self.line(f"{tag} = -1; {unknown} = []")
        with self.block(f"for _ in range({count}):"):
            self.line(f"{tag}, {end}, offset = read_tag(frame, offset, {tag})", place)
            for number, (name, known, _) in wire.known.items():
                with self.block(f"if {tag} == {number}:"):
                    self.read(known, f"{value}.{name}", _join(path, name))
                    self.flush()
                    wrong = f"f'tag {number} announced another size, {{offset - {end}}} bytes off'"
                    self.line(f"if offset != {end}: raise Refused({wrong})", [(_join(path, name), 0)])
                    self.line("continue")
            self.line(f"{unknown}.append(({tag}, frame[offset:{end}]))")
            self.line(f"offset = {end}")
        self.line(f"{value}.unknown_tags = tuple({unknown})")


class _EncoderText(_Text):
    """Writes encode(value, head). Numbers wait in `numbers` until they can be packed together, and what is
    ready waits in `pieces` until a loop or a branch begins."""

    def __init__(self, cls: Any, version: int) -> None:
        super().__init__(cls, version, "def encode(value, head=b''):")
        self.out = "out"
        self.numbers: list[tuple[str, str, str]] = []  # (expression, format letter, path)
        self.pieces: list[tuple[str, Place]] = [("head", [])]
        self.is_begun = False  # whether the list `out` exists
        self.writers: dict[type, Callable[[Any, str, str], None]] = {
            primitives.Fixed: self.fixed,
            primitives.Uuid: self.uuid,
            primitives.Varint: self.varint,
            primitives.String: self.string,
            primitives.Bytes: self.bytes,
            primitives.Records: self.bytes,
            primitives.Array: self.array,
            primitives.Nullable: self.nullable,
            primitives.Entity: self.write_entity,
        }

    def compile(self) -> Encoder:
        self.write_entity(self.entity, "value", "")
        self.join("return b''.join({})")
        self.depth = 1
        with self.block("except (StructError, ValueError, TypeError, AttributeError) as failure:"):
            self.line("raise explain(failure) from None")
        found: Encoder = self.finish("encode")
        return found

    def explain(self, failure: BaseException) -> ValueError:
        """The exception for what went wrong in the text: which field, why."""
        fields = ", ".join(dict.fromkeys(path for path, _ in self.places[_line_of(failure)]))
        reason = "None, where null is not allowed" if "NoneType" in str(failure) else str(failure)
        return ValueError(f"{self.name} v{self.version}.{fields}: {reason}")

    def write(self, wire: Any, value: str, path: str) -> None:
        self.writers[type(wire)](wire, value, path)

    def piece(self, expression: str, place: Place) -> None:
        self.pack()
        self.pieces.append((expression, place))

    def pack(self) -> None:
        """Make one piece of the numbers that wait."""
        numbers, self.numbers = self.numbers, []
        if numbers:
            shape = struct.Struct(">" + "".join(letter for _, letter, _ in numbers))
            pack = self.constant("pack_", shape.pack)
            values = ", ".join(expression for expression, _, _ in numbers)
            self.pieces.append((f"{pack}({values})", [(path, 0) for _, _, path in numbers]))

    def join(self, statement: str) -> None:
        """`statement` with {} for everything written so far."""
        if self.is_begun:
            self.flush()
            self.line(statement.format(self.out))
        else:
            self.write_pieces(*statement.split("{}"))

    def flush(self) -> None:
        """Write what waits; what follows stands in a loop or a branch."""
        self.pack()
        if not self.is_begun:
            self.is_begun = True
            self.line(f"{self.out} = []")
        if self.pieces:
            self.write_pieces(f"{self.out} += ", "")

    def write_pieces(self, before: str, after: str) -> None:
        """A tuple of the pieces, each on a line of its own, so that an error finds its field."""
        self.pack()
        self.line(f"{before}(")
        for expression, place in self.pieces:
            self.line(f"{expression},", place)
        self.line(f"){after}")
        self.pieces = []

    def fixed(self, wire: primitives.Fixed, value: str, path: str) -> None:
        self.numbers.append((value, wire.code, path))

    def uuid(self, wire: Any, value: str, path: str) -> None:
        self.piece(f"{value}.bytes", [(path, 0)])

    def varint(self, wire: primitives.Varint, value: str, path: str) -> None:
        build = self.constant("build_", wire.build)
        self.piece(f"{build}({value})", [(path, 0)])

    def length(self, wire: primitives.Counted, count: str, path: str) -> None:
        """Write a length: `count` is one more than it in compact form."""
        if wire.is_compact:
            checked = f"long_string({count})" if isinstance(wire, primitives.String) else count
            self.piece(f"UVARINT[{count}] if {count} < 128 else uvarint({checked})", [(path, 0)])
        else:
            self.numbers.append((count, wire.plain_length.code, path))

    def counted(self, wire: primitives.Counted, value: str, path: str, content: str, empty: str) -> str:
        """Write the length of a value and leave its content in a variable."""
        data, count, place = self.new("data"), self.new("count"), [(path, 0)]
        more = " + 1" if wire.is_compact else ""
        if wire.is_nullable:
            null = 0 if wire.is_compact else -1
            self.line(f"{data} = {value}", place)
            self.line(f"if {data} is None: {data} = {empty}; {count} = {null}")
            self.line(f"else: {data} = {data}{content}; {count} = len({data}){more}", place)
        else:
            self.line(f"{data} = {value}{content}", place)
            self.line(f"{count} = len({data}){more}", place)
        self.length(wire, count, path)
        return data

    def string(self, wire: primitives.String, value: str, path: str) -> None:
        self.piece(self.counted(wire, value, path, ".encode()", "b''"), [(path, 0)])

    def bytes(self, wire: primitives.Bytes, value: str, path: str) -> None:
        self.piece(self.counted(wire, value, path, "", "b''"), [(path, 0)])

    def array(self, wire: primitives.Array, value: str, path: str) -> None:
        items = self.counted(wire, value, path, "", "()")
        if isinstance(wire.element, primitives.Fixed):
            self.piece(f"pack(f'>{{len({items})}}{wire.element.code}', *{items})", [(path, 0)])
            return
        self.flush()
        item = self.new("item")
        with self.block(f"for {item} in {items}:", [(path, 0)]):
            self.write(wire.element, item, path)
            self.flush()

    def nullable(self, wire: primitives.Nullable, value: str, path: str) -> None:
        item = self.new("item")
        self.line(f"{item} = {value}")
        self.numbers.append((f"-1 if {item} is None else 1", "b", path))
        self.flush()
        with self.block(f"if {item} is not None:"):
            self.write_entity(wire.element, item, path)
            self.flush()

    def write_entity(self, wire: primitives.Entity, value: str, path: str) -> None:
        if value.count("."):
            value, long = self.new("item"), value
            self.line(f"{value} = {long}")
        for name, each in wire.fields:
            self.write(each, f"{value}.{name}", _join(path, name))
        if wire.tagged:
            tags, place = self.new("tags"), [(_join(path, "tagged fields"), 0)]
            self.line(f"{tags} = {value}.unknown_tags", place)
            for tag, (name, each, default) in sorted(wire.tagged.known.items()):
                self.tagged(tag, each, f"{value}.{name}", default, tags, _join(path, name))
            self.piece(f"encode_tags({tags}) if {tags} else b'\\0'", place)

    def tagged(self, tag: int, wire: Any, value: str, default: Any, tags: str, path: str) -> None:
        """Add a known field to the tags unless it equals its default. It is written beside what waits."""
        item, usual = self.new("item"), self.literal(default)
        self.line(f"{item} = {value}", [(path, 0)])
        test = f"is not {usual} and {item} != {usual}" if usual.startswith("default_") else f"!= {usual}"
        with self.block(f"if {item} {test}:"):
            outer = self.out, self.numbers, self.pieces, self.is_begun
            self.out, self.numbers, self.pieces, self.is_begun = self.new("out"), [], [], False
            self.write(wire, item, path)
            self.join(f"{tags} = (*{tags}, ({tag}, b''.join({{}})))")
            self.out, self.numbers, self.pieces, self.is_begun = outer
