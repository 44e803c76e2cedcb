"""What is read of a request that is only forwarded: its first bytes."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

Frame = bytes | bytearray | memoryview
"""A request without its size, or its first bytes."""
HEAD_BYTES = 8
"""api_key, api_version, correlation_id: the part that all versions of the header share."""
_head_at = Struct(">hhi").unpack_from
_FIRST_FLEXIBLE_PRODUCE = 9
_MOST_VARINT_BYTES = 5


class Head(NamedTuple):
    """The first bytes of a request."""

    api_key: int
    api_version: int
    correlation_id: int


def head(frame: Frame) -> Head:
    """The head of a request of at least HEAD_BYTES."""
    return Head._make(_head_at(frame))


def client_id(frame: Frame) -> str:
    """The client id, as far as it can be read; it is at the same place in all versions."""
    length = int.from_bytes(frame[8:10], signed=True)
    return bytes(frame[10 : 10 + max(0, length)]).decode(errors="replace")


def acks(frame: Frame, api_version: int) -> int | None:
    """The acks of a Produce; None if they cannot be read. If it is whole, the broker will close the
    connection for that.
    """
    is_flexible = api_version >= _FIRST_FLEXIBLE_PRODUCE
    try:
        at = 10 + max(0, int.from_bytes(frame[8:10], signed=True))
        if is_flexible:
            at = _behind_tags(frame, at)
            length, at = _varint(frame, at)
            at += max(0, length - 1)
        else:
            at += 2 + max(0, int.from_bytes(frame[at : at + 2], signed=True))
    except IndexError:
        return None
    return int.from_bytes(frame[at : at + 2], signed=True) if at + 2 <= len(frame) else None


def _behind_tags(frame: Frame, at: int) -> int:
    """Where the header's tagged fields end."""
    count, at = _varint(frame, at)
    for _ in range(count):
        _, at = _varint(frame, at)
        size, at = _varint(frame, at)
        at += size
    return at


def _varint(frame: Frame, at: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends. Raises IndexError."""
    value = 0
    for place in range(_MOST_VARINT_BYTES):
        byte = frame[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise IndexError(at)
