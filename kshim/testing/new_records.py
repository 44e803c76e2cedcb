"""Records that a test wants to produce, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

__all__ = ["Codec", "NewRecord", "Text", "as_bytes", "new_record"]

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Text = str | bytes | None
"""A key or value; text is written as UTF-8, None as Kafka's null."""
Headers = Mapping[str, Text] | Iterable[tuple[str, Text]]


class NewRecord(NamedTuple):
    """A record to produce. `timestamp_ms`: None for now. `partition`: None to choose it by the key."""

    value: Text = None
    key: Text = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None

    @property
    def header_pairs(self) -> tuple[tuple[str, bytes | None], ...]:
        """The headers as they are sent."""
        pairs = self.headers.items() if isinstance(self.headers, Mapping) else self.headers
        return tuple((name, as_bytes(value)) for name, value in pairs)


def as_bytes(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def new_record(given: object) -> NewRecord:
    """Make a NewRecord from what a test gave: a NewRecord, a value, or a pair of key and value. Raises
    TypeError for anything else.
    """
    if not isinstance(given, tuple):
        return NewRecord(_text("value", given))
    if not isinstance(given, NewRecord):
        if len(given) != 2:
            raise TypeError(f"a record has to be a value, or a pair of key and value, not {given!r}")
        key, value = given
        return NewRecord(_text("value", value), _text("key", key))
    _text("value", given.value)
    _text("key", given.key)
    _number("timestamp_ms", given.timestamp_ms)
    _number("partition", given.partition)
    return given._replace(headers=_headers(given.headers))


def _text(name: str, text: object) -> Text:
    if isinstance(text, str | bytes | None):
        return text
    more = ": json.dumps(…) makes a str of it" if isinstance(text, Mapping | list) else ""
    raise TypeError(
        f"the {name} of a record has to be a str, bytes or None, not {type(text).__name__}: {text!r}{more}"
    )


def _number(name: str, number: object) -> None:
    if not isinstance(number, int | None) or isinstance(number, bool):
        raise TypeError(
            f"the {name} of a record has to be an int or None, not {type(number).__name__}: {number!r}"
        )


def _headers(given: object) -> tuple[tuple[str, Text], ...]:
    pairs = given.items() if isinstance(given, Mapping) else given
    if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes):
        raise TypeError(
            f"the headers of a record have to be a dict, or pairs of name and value, not {given!r}"
        )
    return tuple(map(_header, pairs))


def _header(pair: object) -> tuple[str, Text]:
    match pair:
        case (str(name), value):
            return name, _text(f"header {name!r}", value)
    raise TypeError(f"a header of a record has to be a name, which is a str, and a value, not {pair!r}")
