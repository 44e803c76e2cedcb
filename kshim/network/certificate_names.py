"""The name of a certificate's subject as Java prints it: the RFC 2253 text of X500Principal.getName().

Kafka's principals are these texts, so ACLs name them. Java knows only the short names of RFC 2253. It prints
every other attribute as its number and the hexadecimal form of its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_SHORT_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_STRINGS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E))
"""UTF8String, PrintableString and so on; Java reads all of them as UTF-8."""
_EXPLICIT_VERSION = 0xA0
_ESCAPED = frozenset(',=+<>#;"\\')
_Element = tuple[int, int, int]
"""A DER element: its tag, and where its content begins and ends."""


class NoCertificate(ValueError):
    """The bytes are no certificate."""


def subject(certificate: bytes) -> str:
    """Return the name of the subject of a certificate in DER that TLS has verified.

    Raises NoCertificate for other bytes.
    """
    try:
        (_, start, end) = _element(certificate, 0)
        (_, start, end) = _element(certificate, start)
        fields = list(_elements(certificate, start, end))
        is_versioned = fields[0][0] == _EXPLICIT_VERSION
        (_, start, end) = fields[4 + is_versioned]  # behind serial number, algorithm, issuer, validity
        names = [_relative_name(certificate, *each[1:]) for each in _elements(certificate, start, end)]
    except IndexError as error:
        raise NoCertificate("these bytes are no certificate") from error
    return ",".join(reversed(names))


def _relative_name(data: bytes, start: int, end: int) -> str:
    return "+".join(_attribute(data, *each[1:]) for each in _elements(data, start, end))


def _attribute(data: bytes, start: int, end: int) -> str:
    (_, oid_start, value_at) = _element(data, start)
    oid = _number(data[oid_start:value_at])
    (tag, value_start, value_end) = _element(data, value_at)
    name = _SHORT_NAMES.get(oid)
    if name is None or tag not in _STRINGS:
        return f"{name or oid}=#{data[value_at:value_end].hex()}"
    return f"{name}={_escaped(data[value_start:value_end].decode(errors='replace'))}"


def _escaped(text: str) -> str:
    """Escape a value as RFC 2253 does: special characters, and blanks at both ends."""
    escaped = "".join(f"\\{sign}" if sign in _ESCAPED else sign for sign in text).replace("\0", "\\00")
    leading = len(escaped) - len(escaped.lstrip(" "))
    inner = escaped.strip(" ")
    if not inner:
        return "\\ " * leading
    return "\\ " * leading + inner + "\\ " * (len(escaped) - leading - len(inner))


def _number(oid: bytes) -> str:
    """Return an object identifier in dotted form."""
    arcs, arc = [], 0
    for byte in oid:
        arc = arc << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(arc)
            arc = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _elements(data: bytes, start: int, end: int) -> Iterator[_Element]:
    while start < end:
        element = _element(data, start)
        yield element
        start = element[2]


def _element(data: bytes, at: int) -> _Element:
    tag, length = data[at], data[at + 1]
    start = at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[start : start + count])
        start += count
    if start + length > len(data):
        raise IndexError("an element ends behind the data")
    return tag, start, start + length
