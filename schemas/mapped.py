"""Long arrays of a response. Their elements are made while they are written, one at a time.

A tuple of 300,000 partitions would take 100 MB, and as much time to free as to make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar, overload

from schemas.message import TooManyElements

T = TypeVar("T")
R = TypeVar("R")


class Mapped(Sequence[R]):
    """A sequence of `function(item)` for each item, made anew at each iteration. It equals their tuple.

    The items must not change, and `function` may use nothing that changes, because another thread may write
    the array.
    """

    __slots__ = ("_function", "_items")

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self._function = function
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[R]:
        return map(self._function, self._items)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, Mapped) else other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        if isinstance(index, slice):
            return Mapped(self._function, self._items[index])
        return self._function(self._items[index])

    def __repr__(self) -> str:
        return repr(tuple(self))


class Chained(Mapped[R]):
    """Several arrays as one, one after the other."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Sequence[R]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[R]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        return tuple(self)[index]


class Written(Mapped[R]):
    """A mapped array of structures or strings that keeps its bytes after it has been written for the first
    time.

    So it may be used for one version of one message only.
    """

    __slots__ = ("_bytes",)

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        super().__init__(function, items)
        self._bytes: bytes | None = None

    def written(self, write: Callable[[R], bytes], left: int) -> bytes:
        """The bytes of all elements. The first call raises TooManyElements if they are more than `left`."""
        if self._bytes is None:
            if len(self) > left:
                raise TooManyElements
            self._bytes = b"".join(map(write, self))
        return self._bytes
