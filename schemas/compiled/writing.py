"""Generates the function that writes one version of a message."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from schemas import primitives
from schemas.compiled.text import NO_LIMIT, Place, Text, join, line_of
from schemas.mapped import Written
from schemas.pieces import Pieces, block
from schemas.primitives import Construct, encode_uvarint

Encoder = Callable[..., bytes]
PieceEncoder = Callable[..., Pieces]

MOST_PIECES: Final = 1024
"""The number of pieces of a long message after which they are joined to one."""


def _encode_tags(tags: Iterable[tuple[int, bytes]]) -> bytes:
    known = dict(tags)
    out = [encode_uvarint(len(known))]
    for tag, data in sorted(known.items()):
        out += (encode_uvarint(tag), encode_uvarint(len(data)), data)
    return b"".join(out)


_RUNTIME: Final[Mapping[str, object]] = {
    "FAILURES": (struct.error, primitives.ConstructError, ValueError, TypeError, AttributeError),
    "pack": struct.pack,
    "encode_tags": _encode_tags,
    "uvarint": encode_uvarint,
    "Pieces": Pieces,
    "block": block,
    "Written": Written,
    "UVARINT": tuple(bytes([value]) for value in range(128)),
}


_elements: Final[dict[object, Encoder]] = {}


def write_element(name: str, entity: primitives.Entity, version: int, value: object) -> bytes:
    """The bytes of one element of an array. The function for it is generated at the first use."""
    encode = _elements.get(entity)
    if encode is None:
        encode = _elements[entity] = Writing(name, entity, version).compile()
    return encode(value)


def _is_compact_string(wire: Construct) -> bool:
    return isinstance(wire, primitives.String) and wire.is_compact and not wire.is_nullable


class Writing(Text):
    """Generates encode(value, head, left, left_bytes). Numbers wait in `numbers` until they can be packed
    together; finished expressions wait in `pieces` until a loop or a branch begins.
    """

    def __init__(self, name: str, entity: primitives.Entity, version: int) -> None:
        header = f"def encode(value, head=b'', left={NO_LIMIT}, left_bytes={NO_LIMIT}):"
        super().__init__(name, entity, version, header, {**_RUNTIME, "explain": self.explain})
        self.out = "out"
        self.numbers: list[tuple[str, str, str]] = []  # (expression, format letter, path)
        self.pieces: list[tuple[str, Place]] = [("head", [])]
        self.is_begun = False  # True once the list `out` exists
        self.writers: dict[type, Callable[[Construct, str, str], None]] = {
            primitives.Fixed: self.fixed,
            primitives.Uuid: self.uuid,
            primitives.Varint: self.varint,
            primitives.String: self.string,
            primitives.Bytes: self.bytes,
            primitives.Records: self.records,
            primitives.Array: self.array,
            primitives.Nullable: self.nullable,
            primitives.Entity: self.write_entity,
        }

    def compile(self) -> Encoder:
        """Generate the function that returns the message as one piece."""
        self.generate("b''.join({})")
        found: Encoder = self.finish("encode")
        return found

    def compile_in_pieces(self) -> PieceEncoder:
        """Generate the function that returns the pieces without joining them."""
        self.generate("Pieces({})")
        found: PieceEncoder = self.finish("encode")
        return found

    def generate(self, result: str) -> None:
        """Add the function to the text. result: the expression that it returns; {} in it stands for the
        pieces of the message.
        """
        self.write_entity(self.entity, "value", "")
        self.join(f"return {result}")
        self.depth = 1
        with self.block("except FAILURES as failure:"):
            self.line("raise explain(failure) from None")

    def explain(self, failure: BaseException) -> ValueError:
        """The exception for a failure in the generated function: it names the fields and the reason."""
        fields = ", ".join(dict.fromkeys(path for path, _ in self.places[line_of(failure)]))
        reason = "None, where null is not allowed" if "NoneType" in str(failure) else str(failure)
        return ValueError(f"{self.name} v{self.version}.{fields}: {reason}")

    def write(self, wire: Construct, value: str, path: str) -> None:
        self.writers[type(wire)](wire, value, path)

    def piece(self, expression: str, place: Place) -> None:
        self.pack()
        self.pieces.append((expression, place))

    def pack(self) -> None:
        """Pack the waiting numbers into one piece."""
        numbers, self.numbers = self.numbers, []
        if numbers:
            shape = struct.Struct(">" + "".join(letter for _, letter, _ in numbers))
            pack = self.constant("pack_", shape.pack)
            values = ", ".join(expression for expression, _, _ in numbers)
            self.pieces.append((f"{pack}({values})", [(path, 0) for _, _, path in numbers]))

    def join(self, statement: str) -> None:
        """Add the line `statement`, in which {} stands for all pieces so far."""
        if self.is_begun:
            self.flush()
            self.line(statement.format(self.out))
        else:
            self.write_pieces(*statement.split("{}"))

    def flush(self) -> None:
        """Add all waiting pieces to the text, before a loop or a branch begins."""
        self.pack()
        if not self.is_begun:
            self.is_begun = True
            self.line(f"{self.out} = []; {self.out}_joined = 0")
        if self.pieces:
            self.write_pieces(f"{self.out} += ", "")

    def write_pieces(self, before: str, after: str) -> None:
        """Add a tuple of the pieces to the text. Each has its line, so that an error finds its field."""
        self.pack()
        self.line(f"{before}(")
        for expression, place in self.pieces:
            self.line(f"{expression},", place)
        self.line(f"){after}")
        self.pieces = []

    def fixed(self, wire: primitives.Fixed, value: str, path: str) -> None:
        self.numbers.append((value, wire.code, path))

    def uuid(self, wire: primitives.Uuid, value: str, path: str) -> None:
        self.piece(f"{value}.bytes", [(path, 0)])

    def varint(self, wire: primitives.Varint, value: str, path: str) -> None:
        build = self.constant("build_", wire.build)
        self.piece(f"{build}({value})", [(path, 0)])

    def length(self, wire: primitives.Counted, count: str, path: str) -> None:
        """Generate the writing of a length. count: in compact form, one more than the length."""
        if wire.is_compact:
            checked = f"long_string({count})" if isinstance(wire, primitives.String) else count
            self.piece(f"UVARINT[{count}] if {count} < 128 else uvarint({checked})", [(path, 0)])
        else:
            self.numbers.append((count, wire.plain_length.code, path))

    def counted(
        self, wire: primitives.Counted, value: str, path: str, content: str, empty: str, spends: bool = False
    ) -> str:
        """Generate the writing of a value's length, and return the variable with its content.

        spends: True to count the content's bytes.
        """
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
        if spends:
            self.spend_bytes(count)
        self.length(wire, count, path)
        return data

    def string(self, wire: primitives.String, value: str, path: str) -> None:
        self.piece(self.counted(wire, value, path, ".encode()", "b''", spends=True), [(path, 0)])

    def bytes(self, wire: primitives.Bytes, value: str, path: str) -> None:
        self.piece(self.counted(wire, value, path, "", "b''", spends=True), [(path, 0)])

    def records(self, wire: primitives.Records, value: str, path: str) -> None:
        """Generate the writing of records. Their bytes are not counted: Fetch limits them when it reads the
        log.
        """
        self.piece(self.counted(wire, value, path, "", "b''"), [(path, 0)])

    def array(self, wire: primitives.Array, value: str, path: str) -> None:
        items = self.counted(wire, value, path, "", "()")
        if isinstance(wire.element, primitives.Fixed):
            self.spend(f"len({items})")
            self.piece(f"pack(f'>{{len({items})}}{wire.element.code}', *{items})", [(path, 0)])
            return
        self.flush()
        if _is_compact_string(wire.element):
            with self.block(f"if isinstance({items}, Written):", [(path, 0)]):
                self.written(items, self.constant("write_", primitives.compact_string), path)
            with self.block("else:"):
                self.loop(wire, items, path)
            return
        if not isinstance(wire.element, primitives.Entity):
            self.loop(wire, items, path)
            return
        write = self.constant(
            "write_", partial(write_element, f"{self.name}.{path}", wire.element, self.version)
        )
        with self.block(f"if {items}.__class__ is Written:", [(path, 0)]):
            self.written(items, write, path)
        with self.block("else:"):
            self.loop(wire, items, path)

    def written(self, items: str, write: str, path: str) -> None:
        """Generate the writing of an array that keeps its bytes."""
        data = self.new("data")
        self.line(f"{data} = {items}.written({write}, left)", [(path, 0)])
        self.spend_bytes(f"len({data})")
        self.line(f"{self.out}.append({data})", [(path, 0)])

    def loop(self, wire: primitives.Array, items: str, path: str) -> None:
        """Generate a loop that writes the elements one by one."""
        self.spend(f"len({items})")
        item = self.new("item")
        with self.block(f"for {item} in {items}:", [(path, 0)]):
            self.write(wire.element, item, path)
            self.flush()
            self.join_some()

    def join_some(self) -> None:
        """Generate the joining of many pieces: small pieces take ten times the memory of their bytes."""
        tail = f"{self.out}[{self.out}_joined:]"
        with self.block(f"if len({self.out}) - {self.out}_joined > {MOST_PIECES}:"):
            self.line(f"{tail} = (block({tail}),)")
            self.line(f"{self.out}_joined += 1")

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
            self.write(each, f"{value}.{name}", join(path, name))
        if wire.tagged:
            tags, place = self.new("tags"), [(join(path, "tagged fields"), 0)]
            self.line(f"{tags} = {value}.unknown_tags", place)
            for tag, (name, each, default) in sorted(wire.tagged.known.items()):
                self.tagged(tag, each, f"{value}.{name}", default, tags, join(path, name))
            self.piece(f"encode_tags({tags}) if {tags} else b'\\0'", place)

    def tagged(self, tag: int, wire: Construct, value: str, default: object, tags: str, path: str) -> None:
        """Generate: add a known field to `tags`, unless it equals its default. Its pieces are kept apart from
        those that wait.
        """
        item, usual = self.new("item"), self.literal(default)
        self.line(f"{item} = {value}", [(path, 0)])
        test = f"is not {usual} and {item} != {usual}" if usual.startswith("default_") else f"!= {usual}"
        with self.block(f"if {item} {test}:"):
            outer = self.out, self.numbers, self.pieces, self.is_begun
            self.out, self.numbers, self.pieces, self.is_begun = self.new("out"), [], [], False
            self.write(wire, item, path)
            self.join(f"{tags} = (*{tags}, ({tag}, b''.join({{}})))")
            self.out, self.numbers, self.pieces, self.is_begun = outer
