"""Joins texts that clients chose, and cuts them first."""

from __future__ import annotations

from collections.abc import Iterable

MOST_CHARACTERS = 1_000


def joined(parts: Iterable[str], separator: str = ", ", most: int = MOST_CHARACTERS) -> str:
    """The parts with a separator between them, cut after `most` characters. Parts beyond these
    are not read.
    """
    found: list[str] = []
    size = -len(separator)
    for part in parts:
        found.append(part[:most])
        size += len(separator) + len(found[-1])
        if size >= most:
            break
    return separator.join(found)[:most]
