"""Arrays of responses that many clients ask for, written once: the partitions of large topics."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from schemas.mapped import Written

MOST_ELEMENTS = 200_000
"""In all arrays together; each takes some 30 bytes."""

T = TypeVar("T")
R = TypeVar("R")


class WrittenArrays:
    """Keeps arrays by key, each as long as what it was made of is the same."""

    def __init__(self) -> None:
        self._arrays: dict[Hashable, tuple[tuple[object, ...], Written[Any]]] = {}
        self._elements = 0

    def array(
        self, key: Hashable, sources: tuple[object, ...], function: Callable[[T], R], items: Sequence[T]
    ) -> Written[R]:
        """The array of `function(item)` for each item; the one kept under `key` if it was made of the very
        same sources.
        """
        known = self.known(key, sources)
        if known is not None:
            return known
        made = Written(function, items)
        self._forget(key)
        self._arrays[key] = sources, made
        self._elements += len(made)
        while self._elements > MOST_ELEMENTS:
            self._forget(next(iter(self._arrays)))
        return made

    def known(self, key: Hashable, sources: tuple[object, ...]) -> Written[Any] | None:
        """The array that is kept under `key`, if it was made of the very same sources."""
        known = self._arrays.get(key)
        return known[1] if known is not None and all(map(_is_same, known[0], sources)) else None

    def _forget(self, key: Hashable) -> None:
        known = self._arrays.pop(key, None)
        if known is not None:
            self._elements -= len(known[1])


def _is_same(one: object, other: object) -> bool:
    return one is other
