"""Texts of many parts that clients chose: cut before they are joined."""

from __future__ import annotations

from collections.abc import Iterable

MOST_CHARACTERS = 1_000


def joined(parts: Iterable[str], separator: str = ", ", most: int = MOST_CHARACTERS) -> str:
    """The first `most` characters of all parts with a separator between them. Later parts are not asked
    for.
    """
    found = []
    left = most
    for part in parts:
        found.append(part[:left] if left > 0 else "")
        left -= len(part) + len(separator)
        if left < 0:
            break
    return separator.join(found)[:most]
