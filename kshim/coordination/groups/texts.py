"""Texts of many parts that clients chose: cut before they are joined."""

from __future__ import annotations

from collections.abc import Iterable

MOST_CHARACTERS = 1_000


def joined(parts: Iterable[str], separator: str = ", ", most: int = MOST_CHARACTERS) -> str:
    """The first `most` characters of all parts with a separator between them. Later parts are not asked
    for.
    """
    found: list[str] = []
    size = -len(separator)
    for part in parts:
        found.append(part[:most])
        size += len(separator) + len(found[-1])
        if size >= most:
            break
    return separator.join(found)[:most]
