"""A search of a log by time, all its steps done at once."""

from __future__ import annotations

from typing import Any

from kshim.storage.interfaces import Search, TimestampOffset


def find(search: Search) -> TimestampOffset | None:
    """The result of the search."""
    result: Any = None
    while True:
        try:
            result = search.send(result).do()
        except StopIteration as done:
            found: TimestampOffset | None = done.value
            return found
