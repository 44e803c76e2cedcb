"""The forms in which `kshim consume` prints records: text, JSON, the user's format, or rows for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import click

from kshim.cli.json_records import json_line
from kshim.client.record import Consumed, Headers
from kshim.recorder.one_line import on_one_line

Form = Callable[[Consumed], bytes]

TITLES: Final = ("Partition", "Offset", "Time (UTC)", "Key", "Value", "Headers")
LEAST_WIDTHS: Final = {"Offset": 8, "Time (UTC)": len("2026-11-27 17:30:00.000"), "Key": 10, "Value": 20}
MOST_WIDTH: Final = 40
"""A longer cell moves the cells behind it in its row, and not in later rows."""
MOST_CELL_CHARACTERS: Final = 1_000
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_LENGTH_OF_NULL: Final = -1


def text_form(key_separator: str | None, null: str) -> Form:
    """Values, one a line; with a separator, the key before it. null: stands for a null."""
    nothing = null.encode()
    if key_separator is None:
        return lambda record: (nothing if record.value is None else record.value) + b"\n"
    separator = key_separator.encode()

    def write(record: Consumed) -> bytes:
        key, value = (nothing if part is None else part for part in (record.key, record.value))
        return b"%b%b%b\n" % (key, separator, value)

    return write


def json_form(record: Consumed) -> bytes:
    """A line of JSON."""
    return f"{json_line(record)}\n".encode()


FIELDS: Final[dict[str, Callable[[Consumed, bytes], bytes]]] = {
    "t": lambda it, null: it.topic.encode(),
    "p": lambda it, null: b"%d" % it.partition,
    "o": lambda it, null: b"%d" % it.offset,
    "k": lambda it, null: null if it.key is None else it.key,
    "s": lambda it, null: null if it.value is None else it.value,
    "K": lambda it, null: b"%d" % (_LENGTH_OF_NULL if it.key is None else len(it.key)),
    "S": lambda it, null: b"%d" % (_LENGTH_OF_NULL if it.value is None else len(it.value)),
    "T": lambda it, null: b"%d" % it.timestamp_ms,
    "h": lambda it, null: _headers(it.headers, null),
    "%": lambda it, null: b"%",
}
"""The fields of --format, with kcat's letters."""


def own_form(text: str, null: str) -> Form:
    """The user's format: %-fields as in kcat, and escapes such as \\n and \\t. Raises UsageError."""
    nothing = null.encode()
    parts: list[Callable[[Consumed, bytes], bytes] | bytes] = []
    for field, escaped, plain in re.findall(r"%(.?)|\\(.?)|([^%\\]+)", text, re.DOTALL):
        if plain:
            parts.append(plain.encode())
        elif escaped in _ESCAPES:
            parts.append(_ESCAPES[escaped].encode())
        elif field in FIELDS:
            parts.append(FIELDS[field])
        else:
            known = ", ".join(f"%{each}" for each in FIELDS)
            raise click.UsageError(f"--format {text}: expected {known}, and \\n, \\t, \\r, \\0, \\\\")
    return lambda it: b"".join(part if isinstance(part, bytes) else part(it, nothing) for part in parts)


class Rows:
    """Rows under titles, for a terminal. A column is as wide as its widest cell so far."""

    def __init__(self, several_topics: bool) -> None:
        self._several_topics = several_topics
        self._titles = ("Topic", *TITLES) if several_topics else TITLES
        self._widths = [max(len(title), LEAST_WIDTHS.get(title, 0)) for title in self._titles]
        self._is_begun = False

    def __call__(self, record: Consumed) -> bytes:
        cells = (
            *((record.topic,) if self._several_topics else ()),
            str(record.partition),
            str(record.offset),
            _time(record.timestamp_ms),
            _shown(record.key),
            _shown(record.value),
            " ".join(f"{name}={_shown(value)}" for name, value in record.headers),
        )
        head = b"" if self._is_begun else self._row(self._titles)
        self._is_begun = True
        return head + self._row(cells)

    def _row(self, cells: tuple[str, ...]) -> bytes:
        shown = [on_one_line(cell, MOST_CELL_CHARACTERS) for cell in cells]
        for at, cell in enumerate(shown):
            self._widths[at] = max(self._widths[at], min(len(cell), MOST_WIDTH))
        line = "  ".join(f"{cell:{width}}" for cell, width in zip(shown, self._widths, strict=True))
        return f"{line.rstrip()}\n".encode()


def _time(at_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] if at_ms >= 0 else "-"
    except (ValueError, OverflowError, OSError):
        return str(at_ms)


def is_terminal() -> bool:
    """True if people read standard output."""
    return sys.stdout.isatty()


def _shown(data: bytes | None) -> str:
    return "null" if data is None else data.decode(errors="backslashreplace")


def _headers(headers: Headers, null: bytes) -> bytes:
    return b",".join(name.encode() + b"=" + (null if value is None else value) for name, value in headers)
