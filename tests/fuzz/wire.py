"""Invariants of each message: compiled code and construct agree, and what was read can be written."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

from schemas.message import Value, struct
from schemas.primitives import ConstructError, can_be_written


def read_by_construct(cls: Any, version: int, data: bytes, offset: int = 0) -> tuple[Any, int] | None:
    """The value that construct reads from the bytes, and its end; None if construct refuses them."""
    stream = io.BytesIO(data)
    stream.seek(offset)
    with suppress(ConstructError):
        return struct(cls, version).parse_stream(stream), stream.tell()
    return None


def plain(value: Any) -> Any:
    """A value for comparison: tags in their order, each once, as they are written; NaN equals itself."""
    if isinstance(value, Value):
        *fields, tags = value._values(value)
        return type(value).__name__, *map(plain, fields), tuple(sorted(dict(tags).items()))
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return repr(value) if isinstance(value, float) else value


def has_long_string(value: Any) -> bool:
    """True if a string of the message became too long to be written, through U+FFFD."""
    if isinstance(value, str):
        return not can_be_written(value)
    parts = value if isinstance(value, tuple) else value._values(value) if isinstance(value, Value) else ()
    return any(map(has_long_string, parts))
