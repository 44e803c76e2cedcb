"""The topics that a member names. Many names are sorted, hashed and encoded once, aside, and members, records
and descriptions share the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemas.mapped import Written
from schemas.primitives import compact_string

MANY = 1_000
"""With more names, what a heartbeat costs would depend on them."""


class ManyNames(frozenset[str]):
    """A set of many names. Equal sets are equal, however they were made."""

    __slots__ = ("in_order", "in_record")

    in_order: tuple[str, ...]
    in_record: NamesInRecord
    """The names as the record of a member holds them."""


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


def prepared(names: Sequence[str]) -> frozenset[str]:
    """Like `topic_names`, but do all work that the names will need. Raises ValueError for a name too long."""
    found = topic_names(names)
    if isinstance(found, ManyNames):
        hash(found)
        assert found.in_record.size_bytes
    return found


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
