"""Requests in odd bytes that no tidy client writes, and that Apache Kafka reads nevertheless.

A *looseness* is one way in which bytes may be odd. `frame` writes any request in any version with it,
wherever header and body have a place for it; the message's own construct tree tells where. `sample` fills a
request so that every structure in it has such places.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from schemas import message, primitives
from schemas.api_key import ApiKey
from schemas.header import RequestHeader, request_header_version
from schemas.primitives import encode_uvarint
from schemas.registry import MESSAGES, VERSIONS

UINT32: Final = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Looseness:
    """One way in which bytes may be odd; each default is the usual way."""

    behind: bytes = b""
    """Bytes after the body."""
    null_below: int = 0
    """How far below -1 the length of null is."""
    padded: int = 0
    """How many unneeded bytes each varint has."""
    high_bits: bool = False
    """True to set bits of a varint's fifth byte beyond the 32 that count."""
    tags: tuple[tuple[int, bytes], ...] = ()
    """Unknown tags at the end of each structure, in this order."""
    oversize: int = 0
    """How much too large the announced size of a known tag is."""
    true: int = 1
    """The byte for true, or for a structure that is present."""
    null_strings: bool = False
    """True to make every string null, even where null is not allowed."""


USUAL: Final = Looseness()
LOOSE: Final = {
    "three bytes behind": Looseness(behind=b"abc"),
    "many bytes behind": Looseness(behind=bytes(5000)),
    "null is -2": Looseness(null_below=1),
    "null is -32768": Looseness(null_below=0x7FFF),
    "lengths with a byte too many": Looseness(padded=1),
    "lengths of five bytes": Looseness(padded=4),
    "lengths with bits too many": Looseness(padded=4, high_bits=True),
    "tags in descending order": Looseness(tags=((1000, b"b"), (999, b"a"))),
    "a tag twice": Looseness(tags=((999, b"b"), (999, b""))),
    "known tags of another size": Looseness(oversize=3),
    "true is 127": Looseness(true=0x7F),
}
BROKEN: Final = {
    "lengths of six bytes": Looseness(padded=5),
    "null where it is not allowed": Looseness(null_strings=True),
}
"""Loosenesses that Apache Kafka cannot read either, in requests that have a place for them."""


def requests() -> Iterator[tuple[ApiKey, int]]:
    """Every request and version that kshim serves."""
    for api_key, versions in VERSIONS.items():
        for version in versions:
            yield api_key, version


def sample(api_key: ApiKey, version: int) -> Any:
    """A request with one element in each array and null wherever it is allowed. It asks for nothing that
    exists, and changes nothing."""
    return _sample(MESSAGES[api_key][0].struct(version), "", None)


ANSWERED: Final = {
    "acks": -1,
    "timeout_ms": 10_000,
    "cluster_id": "",  # a known tag
    **dict.fromkeys(("resource_type", "resource_type_filter"), 2),
    **dict.fromkeys(("resource_pattern_type", "pattern_type_filter", "operation", "permission_type"), 3),
}
"""Fields that need these values for Kafka to answer, or to answer without an error."""


def _sample(wire: Any, name: str, default: Any) -> Any:
    if name in ANSWERED:
        return ANSWERED[name]
    match wire:
        case primitives.Entity():
            usual = wire.entity()
            known = [(name, each) for name, each, _ in wire.tagged.known.values()] if wire.tagged else []
            fields = [*wire.fields, *((name, each) for name, each in known if name in ANSWERED)]
            return wire.entity(**{name: _sample(each, name, getattr(usual, name)) for name, each in fields})
        case primitives.Records():
            return b""  # Kafka never answers a Produce whose records are null
        case primitives.Counted(is_nullable=True) | primitives.Nullable():
            return None
        case primitives.Array():
            return (_sample(wire.element, "", getattr(wire.element, "implicit", None)),)
        case primitives.Fixed(code="?"):
            return True
    return default


def frame(api_key: ApiKey, version: int, request: Any, looseness: Looseness) -> bytes:
    """The bytes of a request, without their size."""
    is_flexible = message.definition(type(request)).is_flexible(version)
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id=None)
    write = _Writer(looseness)
    return b"".join(
        (
            write(RequestHeader.struct(request_header_version(is_flexible)), header),
            write(type(request).struct(version), request),
            looseness.behind,
        )
    )


class _Writer:
    """Writes a value by its wire type."""

    def __init__(self, looseness: Looseness) -> None:
        self.looseness = looseness

    def __call__(self, wire: Any, value: Any) -> bytes:
        match wire:
            case primitives.Fixed(code="?"):
                return bytes([self.looseness.true if value else 0])
            case primitives.Nullable():
                if value is None:
                    return struct.pack(">b", max(-1 - self.looseness.null_below, -128))
                return bytes([self.looseness.true]) + self(wire.element, value)
            case primitives.Entity():
                fields = b"".join(self(each, getattr(value, name)) for name, each in wire.fields)
                return fields + (self.tags(wire, value) if wire.tagged else b"")
            case primitives.Counted():
                return self.counted(wire, value)
        return bytes(wire.build(value))

    def counted(self, wire: primitives.Counted, value: Any) -> bytes:
        if value is None or (self.looseness.null_strings and isinstance(wire, primitives.String)):
            return self.length(wire, -1 - self.looseness.null_below)
        if isinstance(wire, primitives.Array):
            return self.length(wire, len(value)) + b"".join(self(wire.element, each) for each in value)
        content = bytes(wire.content(value))
        return self.length(wire, len(content)) + content

    def length(self, wire: primitives.Counted, length: int) -> bytes:
        return self.uvarint((length + 1) % UINT32) if wire.is_compact else wire.plain_length.build(length)

    def uvarint(self, value: int) -> bytes:
        data = bytearray(encode_uvarint(value))
        longest = max(5, 1 + self.looseness.padded)
        for _ in range(min(self.looseness.padded, longest - len(data))):
            data[-1] |= 0x80
            data.append(0)
        if self.looseness.high_bits and len(data) == 5:
            data[-1] |= 0x70
        return bytes(data)

    def tags(self, wire: primitives.Entity, value: Any) -> bytes:
        known = [
            (tag, self(each, getattr(value, name)), self.looseness.oversize)
            for tag, (name, each, default) in wire.tagged.known.items()
            if getattr(value, name) != default
        ]
        unknown = [(tag, data, 0) for tag, data in self.looseness.tags]
        return self.uvarint(len(known) + len(unknown)) + b"".join(
            self.uvarint(tag) + self.uvarint(len(data) + oversize) + data
            for tag, data, oversize in unknown + known
        )
