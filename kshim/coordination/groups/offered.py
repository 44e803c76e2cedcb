"""The protocols that members offer in JoinGroup, kept in about as many bytes as they took on the wire.

A client may name thousands of protocols. Each name as an object would take some 150 bytes, and as much again
in the group's count. So the names of a member are one `bytes`, shared by members that offer the same names.
Its metadata is one more `bytes` if it has many small parts. Names are searched without being decoded.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from kshim.coordination.groups.texts import joined
from schemas.messages.join_group import JoinGroupRequestProtocol

SEPARATOR = b"\xff"
"""Stands between names, as no text in UTF-8 has this byte."""
MOST_NAMES = 10_000
"""How many names the members of a group may offer together; a list that several members share counts once."""
FEW = 10
LARGE_BYTES = 200
"""The parts of metadata are joined only if there are more than FEW, smaller on average than LARGE_BYTES.
Copies of large parts would cost more than objects.
"""


@dataclass(frozen=True, slots=True)
class _Joined:
    """Many `bytes` as one."""

    data: bytes
    ends: array[int]

    def __getitem__(self, index: int) -> bytes:
        return self.data[self.ends[index - 1] if index else 0 : self.ends[index]]


@dataclass(slots=True)
class Protocols:
    """The protocols that one member offers, in its order of preference."""

    names: bytes
    """A SEPARATOR, then each name with a SEPARATOR behind it."""
    _metadata: tuple[bytes, ...] | _Joined

    @classmethod
    def of(cls, protocols: Sequence[JoinGroupRequestProtocol]) -> Protocols:
        """The protocols of a request. O(its bytes)."""
        metadata = tuple(protocol.metadata for protocol in protocols)
        return cls(joined_names(protocol.name for protocol in protocols), _kept(metadata))

    def metadata(self, name: str | None) -> bytes:
        """The metadata of a protocol, at the first place that names it; empty if no place does."""
        place = -1 if name is None else self.names.find(_framed(name))
        return b"" if place < 0 else self._metadata[self.names.count(SEPARATOR, 0, place)]

    def each(self) -> Iterator[tuple[str, bytes]]:
        """The names with their metadata, in the member's order."""
        for place, name in enumerate(split_names(self.names)):
            yield name.decode(), self._metadata[place]

    def names_as(self, other: Protocols) -> bool:
        """True if both offer the same names, in any order."""
        return self.names == other.names or set(split_names(self.names)) == set(split_names(other.names))

    def has(self, name: str) -> bool:
        """True if the member offers a protocol of this name."""
        return _framed(name) in self.names


def listed_names(names: bytes) -> str:
    """The names as people read them, cut after 1000 characters."""
    return joined(name.decode() for name in split_names(names))


def joined_names(names: Iterable[str]) -> bytes:
    """The names in the form of `Protocols.names`. Raises UnicodeEncodeError."""
    return SEPARATOR + b"".join(name.encode() + SEPARATOR for name in names)


def split_names(names: bytes) -> list[bytes]:
    """The single names, in UTF-8, from the result of `joined_names`."""
    return names[1:-1].split(SEPARATOR) if len(names) > 1 else []


def _framed(name: str) -> bytes:
    return SEPARATOR + name.encode() + SEPARATOR


def _kept(metadata: tuple[bytes, ...]) -> tuple[bytes, ...] | _Joined:
    if len(metadata) <= FEW or sum(map(len, metadata)) >= LARGE_BYTES * len(metadata):
        return metadata
    return _Joined(b"".join(metadata), array("I", accumulate(map(len, metadata))))


class Offered:
    """The lists of names that a group's members offer. In most groups all members offer the same list."""

    __slots__ = ("_common", "_count", "_lists")

    def __init__(self) -> None:
        self._lists: dict[bytes, tuple[bytes, int]] = {}
        """By list of names: the `bytes` that its members share, and how many members offer it."""
        self._count = 0
        """How many names all lists have together."""
        self._common: bytes | None = SEPARATOR
        """The names that all lists have; None if they are not computed yet."""

    def __len__(self) -> int:
        return len(self._lists)

    def add(self, protocols: Protocols) -> None:
        """Count the list of a new member, and make it share the `bytes` of members with the same list."""
        names, members = self._lists.get(protocols.names, (protocols.names, 0))
        self._lists[names] = names, members + 1
        protocols.names = names
        if not members:
            self._count += _count(names)
            self._common = names if len(self._lists) == 1 else None

    def remove(self, protocols: Protocols) -> None:
        """Uncount the list of a member that is gone, or offers another list now."""
        names, members = self._lists[protocols.names]
        if members > 1:
            self._lists[names] = names, members - 1
            return
        del self._lists[names]
        self._count -= _count(names)
        self._common = None if self._lists else SEPARATOR

    def has_room(self, names: bytes) -> bool:
        """True if one more member may offer these names: together there are at most MOST_NAMES."""
        return names in self._lists or self._count + _count(names) <= MOST_NAMES

    def common(self) -> bytes:
        """The names that all members offer, in the order of one member's list."""
        if self._common is None:
            shortest, *others = sorted(self._lists, key=len)
            found = split_names(shortest)
            for names in others:
                known = set(split_names(names))
                found = [name for name in found if name in known]
            self._common = SEPARATOR + b"".join(name + SEPARATOR for name in found)
        return self._common

    def is_common(self, names: bytes) -> bool:
        """True if all members offer at least one of these names."""
        common = self.common()
        if common == names:
            return len(names) > len(SEPARATOR)
        return not set(split_names(common)).isdisjoint(split_names(names))


def _count(names: bytes) -> int:
    return names.count(SEPARATOR) - 1
