"""Reads and changes the frames of requests about share groups and streams groups, for which there are no
schemas: the groups that they name, and the brokers that an answer names. Pure.

All are in the flexible encoding (KIP-482): lengths and counts are varints plus one, and 0 is null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from kshim.configs.endpoint import Endpoint
from schemas.api_key import ApiKey

MOST_GROUPS: Final = 10_000
Place = Callable[[int, Endpoint], Endpoint | None]
"""See `rewriting.Place`."""
_CLIENT_ID_AT: Final = 8
_CORRELATION_END: Final = 4
_UUID, _LEADER, _ACQUIRED = 16, 8, 18
"""Sizes in bytes, without tagged fields."""


class Unreadable(ValueError):
    """A frame that is not what its API says. str() says why."""


class Named(NamedTuple):
    """A group that a request names, and where its part of the request begins and ends."""

    group_id: str
    begin: int
    end: int


class Cursor:
    """Reads a frame from a place on. Its methods raise Unreadable behind the end."""

    def __init__(self, frame: bytes | bytearray, at: int = 0) -> None:
        self.frame = frame
        self.at = at

    def skip(self, size: int) -> bytes:
        """Return so many bytes."""
        end = self.at + size
        if not self.at <= end <= len(self.frame):
            raise Unreadable("it ends too early")
        found = bytes(self.frame[self.at : end])
        self.at = end
        return found

    def integer(self, size: int) -> int:
        return int.from_bytes(self.skip(size), signed=True)

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.skip(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise Unreadable("a length has more than five bytes")

    def count(self) -> int:
        """Return the length of an array, of bytes or of a string; 0 for null."""
        return max(0, self.uvarint() - 1)

    def string(self) -> str:
        """Return a string; empty for null."""
        try:
            return self.skip(self.count()).decode()
        except UnicodeDecodeError as error:
            raise Unreadable("a string is no UTF-8") from error

    def tags(self) -> None:
        for _ in range(self.uvarint()):
            self.uvarint()
            self.skip(self.uvarint())

    def each(self, read: Callable[[], object]) -> None:
        """Read an array."""
        for _ in range(self.count()):
            read()


def written(value: int) -> bytes:
    """Return a count or a length as a varint plus one."""
    value += 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


# ---- requests


def _one_group(cursor: Cursor) -> list[Named]:
    begin = cursor.at
    return [Named(cursor.string(), begin, cursor.at)]


def _names(cursor: Cursor) -> list[Named]:
    return _several(cursor, lambda: None)


def _with_topics(cursor: Cursor) -> list[Named]:
    def topic() -> None:
        cursor.string()
        cursor.each(lambda: cursor.skip(4))
        cursor.tags()

    def rest() -> None:
        cursor.each(topic)
        cursor.tags()

    return _several(cursor, rest)


def _several(cursor: Cursor, rest: Callable[[], object]) -> list[Named]:
    """Read an array whose entries begin with a group."""
    found = []
    count = cursor.count()
    if count > MOST_GROUPS:
        raise Unreadable(f"it names {count} groups")
    for _ in range(count):
        begin, group_id = cursor.at, cursor.string()
        rest()
        found.append(Named(group_id, begin, cursor.at))
    return found


_GROUPS: Final[Mapping[int, Callable[[Cursor], list[Named]]]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _one_group,
    ApiKey.SHARE_GROUP_HEARTBEAT: _one_group,
    ApiKey.SHARE_GROUP_DESCRIBE: _names,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _one_group,
    ApiKey.STREAMS_GROUP_DESCRIBE: _names,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _with_topics,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _one_group,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _one_group,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _one_group,
}


def groups(api_key: int, frame: bytes | bytearray) -> list[Named]:
    """Return the groups that a request names. Raises Unreadable."""
    return _GROUPS[api_key](Cursor(frame, _body(frame)))


def only(api_key: int, frame: bytes | bytearray, wanted: Collection[str]) -> bytes:
    """Return a request that names several groups with some of them only."""
    named = groups(api_key, frame)
    begin = _body(frame)
    end = named[-1].end
    kept = [bytes(frame[each.begin : each.end]) for each in named if each.group_id in wanted]
    return bytes(frame[:begin]) + written(len(kept)) + b"".join(kept) + bytes(frame[end:])


def _body(frame: bytes | bytearray) -> int:
    """Return where the body of a request begins."""
    cursor = Cursor(frame, _CLIENT_ID_AT)
    cursor.skip(max(0, cursor.integer(2)))
    cursor.tags()
    return cursor.at


# ---- responses


def joined(frames: Sequence[bytes]) -> bytes:
    """Join responses that have a throttle time and an array of groups each. Raises Unreadable."""
    counts, entries = 0, b""
    for frame in frames:
        cursor = _response(frame)
        cursor.skip(4)
        counts_at = cursor.at
        counts += cursor.count()
        entries += frame[cursor.at : -1]
    return frames[0][:counts_at] + written(counts) + entries + b"\0"


def with_endpoints(api_key: int, version: int, frame: bytes, place: Place) -> bytes:
    """Return a response to ShareFetch or ShareAcknowledge with the client's addresses of the new leaders.

    place: returns where the client reaches a broker. Raises Unreadable.
    """
    if frame.endswith(b"\1\0"):  # it names none
        return frame
    cursor = _response(frame)
    cursor.skip(4 + 2)
    cursor.string()
    is_fetch = api_key == ApiKey.SHARE_FETCH
    if is_fetch or version >= 2:
        cursor.skip(4)
    cursor.each(lambda: _topic(cursor, is_fetch=is_fetch))
    begin = cursor.at
    found = [each for _ in range(cursor.count()) if (each := _endpoint(cursor, place)) is not None]
    return frame[:begin] + written(len(found)) + b"".join(found) + frame[cursor.at :]


def _response(frame: bytes) -> Cursor:
    """Return where the body of a response begins."""
    cursor = Cursor(frame, _CORRELATION_END)
    cursor.tags()
    return cursor


def _topic(cursor: Cursor, *, is_fetch: bool) -> None:
    def acquired() -> None:
        cursor.skip(_ACQUIRED)
        cursor.tags()

    def partition() -> None:
        cursor.skip(4 + 2)
        cursor.string()
        if is_fetch:
            cursor.skip(2)
            cursor.string()
        cursor.skip(_LEADER)
        cursor.tags()
        if is_fetch:
            cursor.skip(cursor.count())
            cursor.each(acquired)
        cursor.tags()

    cursor.skip(_UUID)
    cursor.each(partition)
    cursor.tags()


def _endpoint(cursor: Cursor, place: Place) -> bytes | None:
    node_id, host, port = cursor.integer(4), cursor.string(), cursor.integer(4)
    rest = cursor.at
    cursor.string()
    cursor.tags()
    at = place(node_id, Endpoint(host, port))
    if at is None:
        return None
    name = at.host.encode()
    placed = node_id.to_bytes(4, signed=True) + written(len(name)) + name + at.port.to_bytes(4)
    return placed + bytes(cursor.frame[rest : cursor.at])
