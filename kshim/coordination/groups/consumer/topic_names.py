"""The topics that a member names. Many names are sorted, hashed and encoded once, aside, and members, records
and descriptions share the result. Sets that differ share names. What all of them take is counted in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from sys import getsizeof
from types import MappingProxyType
from typing import NamedTuple

from schemas.consumer_protocol import decode_subscription
from schemas.mapped import Written
from schemas.message import MalformedMessage
from schemas.primitives import compact_string

MANY = 1_000
"""With more names, what a heartbeat costs would depend on them."""


class ManyNames(frozenset[str]):
    """A set of many names. Equal sets are equal, however they were made."""

    __slots__ = ("_kept_bytes", "in_order", "in_record")

    in_order: tuple[str, ...]
    in_record: NamesInRecord
    """The names as the record of a member holds them."""

    @property
    def kept_bytes(self) -> int:
        """About how much memory it takes, with all names. O(names) at the first time."""
        if not hasattr(self, "_kept_bytes"):
            written = len(self) + sum(map(len, self.in_order))
            self._kept_bytes = getsizeof(self) + getsizeof(self.in_order) + written + _texts_bytes(self)
        return self._kept_bytes


class NamesInRecord(Written[str]):
    """The array of many names in a member's record, and the set that it was made of."""

    __slots__ = ("names",)

    def __init__(self, names: ManyNames) -> None:
        super().__init__(str, names.in_order)
        self.names = names

    @property
    def size_bytes(self) -> int:
        """The size of the array. Raises ValueError if a name is too long."""
        return len(self.written(compact_string, len(self)))


def topic_names(names: Sequence[str]) -> frozenset[str]:
    """The set of some names, in the form for their number."""
    if isinstance(names, NamesInRecord):
        return names.names
    if len(names) <= MANY:
        return frozenset(names)
    many = ManyNames(names)
    many.in_order = tuple(sorted(many))
    many.in_record = NamesInRecord(many)
    return many


def prepared(names: Sequence[str], alike: ManyNames | None = None) -> frozenset[str]:
    """Like `topic_names`, but do all work that the names will need. Raises ValueError for a name too long.

    alike: a set that may have many of these names: the same objects are used.
    """
    known = {name: name for name in alike or ()}
    found = topic_names([known.get(name, name) for name in names] if known else names)
    if isinstance(found, ManyNames):
        hash(found)
        assert found.in_record.size_bytes
        assert found.kept_bytes
    return found


def kept_bytes(names: frozenset[str]) -> int:
    """About how much memory a set of names takes, as if it shared no name. O(names) for few names."""
    return names.kept_bytes if isinstance(names, ManyNames) else getsizeof(names) + _texts_bytes(names)


def _texts_bytes(names: Iterable[str]) -> int:
    return sum(map(getsizeof, names))


class Subscription(NamedTuple):
    """The subscription of a classic member."""

    names: frozenset[str]
    rack_id: str | None


class Prepared(NamedTuple):
    """The work on many names of topics that was done before the coordinator is asked."""

    names: frozenset[str] | None = None
    """The topics that the request names; None if they were not prepared."""
    subscriptions: Mapping[bytes, Subscription] = MappingProxyType({})
    """The subscriptions of the classic members whose group the request converts, by their metadata."""


UNPREPARED = Prepared()


def read_subscription(metadata: bytes) -> Subscription:
    """Read the metadata of a classic member. Raises MalformedMessage."""
    read = decode_subscription(metadata)
    return Subscription(topic_names(read.topics), read.rack_id)


def read_aside(found: Iterable[bytes]) -> dict[bytes, Subscription]:
    """Read the metadata of classic members, and do all work that their names will need. What cannot be read
    or written is left out: the coordinator says what is wrong.
    """
    read: dict[bytes, Subscription] = {}
    for metadata in found:
        if metadata not in read:
            with suppress(MalformedMessage, ValueError):
                subscription = decode_subscription(metadata)
                read[metadata] = Subscription(prepared(subscription.topics), subscription.rack_id)
    return read


def in_order(names: frozenset[str]) -> tuple[str, ...]:
    """The names, sorted."""
    return names.in_order if isinstance(names, ManyNames) else tuple(sorted(names))


def in_record(names: frozenset[str]) -> Sequence[str]:
    """The names as the record of a member holds them."""
    return names.in_record if isinstance(names, ManyNames) else tuple(sorted(names))


def size_bytes(names: Iterable[str]) -> int:
    """About the size of the names in a record."""
    if isinstance(names, ManyNames):
        return names.in_record.size_bytes
    return sum(len(name.encode(errors="surrogatepass")) + 1 for name in names)
