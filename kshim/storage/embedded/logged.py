"""The bytes of a write in the write-ahead log, and the write that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from kshim.storage.embedded.writes import Append, Delete, Forget, Put, Trim, Write

_KIND: Final = Struct(">BI")
"""The kind of a write, and its partition_no; 0 if it has none."""
_OFFSET: Final = Struct(">Q")
_PRODUCER_ID: Final = Struct(">q")
_ENTRY: Final = Struct(">Hi")
"""The sizes of a key and of its value; -1 for a deleted key."""
_APPEND, _PUT, _TRIM, _FORGET, _DELETE = range(1, 6)


class LoggedAppend(NamedTuple):
    """Batches with their offsets, as the log has them."""

    seq: int
    partition_no: int
    batches: memoryview


Logged = LoggedAppend | Put | Trim | Forget | Delete


def encode(write: Write) -> tuple[bytes | bytearray | memoryview, ...]:
    """The bytes of a write, in one or two parts: batches are not copied."""
    if isinstance(write, Append):
        return _KIND.pack(_APPEND, write.partition_no), write.batches
    if isinstance(write, Put):
        return (b"".join((_KIND.pack(_PUT, 0), *_entries(write))),)
    if isinstance(write, Trim):
        return (_KIND.pack(_TRIM, write.partition_no) + _OFFSET.pack(write.log_start_offset),)
    if isinstance(write, Forget):
        ids = map(_PRODUCER_ID.pack, write.producer_ids)
        return (b"".join((_KIND.pack(_FORGET, write.partition_no), *ids)),)
    return (_KIND.pack(_DELETE, write.partition_no),)


def _entries(put: Put) -> Iterator[bytes]:
    for key, value in put.changes.items():
        yield _ENTRY.pack(len(key), -1 if value is None else len(value))
        yield key
        yield value or b""


def decode(seq: int, body: memoryview) -> Logged:
    """The write that was logged with the number `seq`."""
    kind, partition_no = _KIND.unpack_from(body)
    rest = body[_KIND.size :]
    if kind == _APPEND:
        return LoggedAppend(seq, partition_no, rest)
    if kind == _PUT:
        return Put(changes=_changes(rest), seq=seq)
    if kind == _TRIM:
        return Trim(partition_no=partition_no, log_start_offset=_OFFSET.unpack(rest)[0], seq=seq)
    if kind == _FORGET:
        ids = [producer_id for (producer_id,) in _PRODUCER_ID.iter_unpack(rest)]
        return Forget(partition_no=partition_no, producer_ids=ids, seq=seq)
    if kind == _DELETE:
        return Delete(partition_no=partition_no, seq=seq)
    raise ValueError(f"unknown kind {kind} of a write")


def _changes(rest: memoryview) -> dict[bytes, bytes | None]:
    changes: dict[bytes, bytes | None] = {}
    at = 0
    while at < len(rest):
        key_size, value_size = _ENTRY.unpack_from(rest, at)
        at += _ENTRY.size
        key = bytes(rest[at : at + key_size])
        at += key_size
        if value_size < 0:
            changes[key] = None
        else:
            changes[key] = bytes(rest[at : at + value_size])
            at += value_size
    return changes
