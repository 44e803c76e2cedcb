"""Records as a client writes and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class NewRecord(NamedTuple):
    """A record to produce."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
    """None for now."""
    partition: int | None = None
    """None to choose it by the key."""
    number: int = 0
    """The number of the input's line, by which a refusal names the record."""


class Consumed(NamedTuple):
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Written(NamedTuple):
    """Records that were written one behind the other."""

    partition: int
    base_offset: int
    """The offset of the first; -1 if it is not known: acks=0, or an answer that was lost."""
    records: Sequence[NewRecord]


class NotWritten(NamedTuple):
    """A record that the broker has refused."""

    record: NewRecord
    why: str
