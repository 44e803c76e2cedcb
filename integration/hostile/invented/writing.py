"""Writes the bytes of one request, with words of a vocabulary and arrays of many sizes.

Only one element of a long array is written. The other elements are copies of its bytes, or differ in a
number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from integration.hostile.invented.vocabulary import Vocabulary
from schemas import primitives
from schemas.api_key import ApiKey
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.header import request_header_version
from schemas.message import definition
from schemas.message import struct as struct_of
from schemas.primitives import encode_uvarint
from schemas.records.batch import Record, encode
from schemas.registry import MESSAGES

NUMBERED: Final = b"%number"
"""A placeholder in a text. Each element has another number in its place, with as many digits."""
LENGTHS: Final = ((0, 5), (1, 60), (2, 20), (20, 8), (300, 6), (3000, 4), (30_000, 2))
"""Pairs of an array's length and its weight in the random choice."""
MOST_BYTES: Final = 3_000_000
"""Most bytes of an array."""
TIMESTAMP_MS: Final = 1_900_000_000_000
"""The timestamp of all records, so that a seed makes the same bytes on any day. No retention deletes them."""
BATCH_SIZES: Final = (1, 1, 10, 1000)
BLOB_BYTES: Final = (0, 10, 1000, 100_000, 900_000)


@dataclass
class Writer:
    """Writes one request."""

    chance: Random
    vocabulary: Vocabulary
    swells: bool
    """True if arrays and texts may be long."""
    numbers: bool = False
    """True if texts get NUMBERED, so that each element has a different text."""

    def write(self, api_key: ApiKey, version: int) -> bytes:
        """Return a frame with its size before it."""
        request = MESSAGES[api_key][0]
        is_flexible = definition(request).is_flexible(version)
        client_id = b"inventor"
        header = struct.pack(">hhih", api_key, version, 1, len(client_id)) + client_id
        header += b"\0" * (request_header_version(is_flexible) == 2)
        body = self.value(struct_of(request, version), api_key.name.lower()).replace(NUMBERED, b"0000000")
        return struct.pack(">i", len(header) + len(body)) + header + body

    def value(self, wire: Any, name: str) -> bytes:
        if getattr(wire, "is_nullable", False) and self.chance.random() < 0.1:
            return b"\0" if wire.is_compact else wire.plain_length.build(-1)
        return _WRITERS[type(wire)](self, wire, name)

    def fixed(self, wire: Any, name: str) -> bytes:
        if wire.code == "?":
            return bytes([self.chance.random() < 0.5])
        if wire.code == "d":
            return struct.pack(">d", self.chance.choice((0.0, 1.0, 1e6)))
        number = self.vocabulary.number(name, 8 * wire.length, self.chance)
        if wire.code.isupper():
            number = max(0, number)
        return struct.pack(f">{wire.code}", number)

    def string(self, wire: Any, name: str) -> bytes:
        text = self.vocabulary.word(name, self.chance).encode()
        if len(text) > 1000 and not self.swells:
            text = text[:100].decode(errors="ignore").encode()
        if self.numbers and self.chance.random() < 0.7:
            text = text[:200].decode(errors="ignore").encode() + NUMBERED
        return self._counted(wire, text)

    def blob(self, wire: Any, name: str) -> bytes:
        return self._counted(wire, self._blob(name))

    def _blob(self, name: str) -> bytes:
        size = self.chance.choice(BLOB_BYTES) if self.swells else 10
        if name == "metadata" and self.chance.random() < 0.7:
            topics = ("narrow", *(f"topic-{number}" for number in range(size // 12)))
            return encode_subscription(ConsumerProtocolSubscription(topics=topics))
        return bytes(size)

    def records(self, wire: Any, name: str) -> bytes:
        count = self.chance.choice(BATCH_SIZES) if self.swells else 1
        value = bytes(self.chance.choice((0, 10, 500)))
        some = [Record(number, TIMESTAMP_MS, b"key", value) for number in range(count)]
        data = encode(some)
        return self._counted(wire, data if self.chance.random() < 0.9 else data[: len(data) // 2])

    def array(self, wire: Any, name: str) -> bytes:
        lengths, weights = zip(*(LENGTHS if self.swells else LENGTHS[:3]), strict=True)
        (length,) = self.chance.choices(lengths, weights)
        swells, numbers = self.swells, self.numbers
        if length > 3:
            self.numbers = self.chance.random() < 0.5
            self.swells = self.chance.random() < 0.2
        if length <= 3:
            elements = b"".join(self.value(wire.element, name) for _ in range(length))
        else:
            element = self.value(wire.element, name)
            length = min(length, MOST_BYTES // max(1, len(element)))
            elements = _numbered(element, length) if NUMBERED in element and not numbers else element * length
        self.swells, self.numbers = swells, numbers
        return self._length(wire, length) + elements

    def nullable(self, wire: Any, name: str) -> bytes:
        return b"\xff" if self.chance.random() < 0.3 else b"\x01" + self.value(wire.element, name)

    def entity(self, wire: Any, name: str) -> bytes:
        parts = [
            self.value(each, "topic" if _is_topic(name, field) else field) for field, each in wire.fields
        ]
        return b"".join(parts) + (b"\0" if wire.tagged else b"")

    def varint(self, wire: Any, name: str) -> bytes:
        found: bytes = wire.build(self.chance.choice((0, 1, 1000)))
        return found

    def uuid(self, wire: Any, name: str) -> bytes:
        return self.vocabulary.uuid(name, self.chance)

    def _counted(self, wire: Any, data: bytes) -> bytes:
        return self._length(wire, len(data)) + data

    def _length(self, wire: Any, length: int) -> bytes:
        if wire.is_compact:
            return encode_uvarint(length + 1)
        found: bytes = wire.plain_length.build(length)
        return found


def _numbered(element: bytes, count: int) -> bytes:
    return b"".join(element.replace(NUMBERED, b"%07d" % number) for number in range(count))


def _is_topic(parent: str, field: str) -> bool:
    """True if a field is the name of a topic."""
    return field == "name" and "topic" in parent


_WRITERS: Final[dict[type, Callable[[Writer, Any, str], bytes]]] = {
    primitives.Fixed: Writer.fixed,
    primitives.Varint: Writer.varint,
    primitives.Uuid: Writer.uuid,
    primitives.String: Writer.string,
    primitives.Bytes: Writer.blob,
    primitives.Records: Writer.records,
    primitives.Array: Writer.array,
    primitives.Nullable: Writer.nullable,
    primitives.Entity: Writer.entity,
}
