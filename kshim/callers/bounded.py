"""Tables of what clients did lately, which do not grow without end."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def forget_first(table: dict[K, V], most: int) -> None:
    """Call it after each new entry: the earliest goes where there are more than `most`."""
    if len(table) > most:
        del table[next(iter(table))]
