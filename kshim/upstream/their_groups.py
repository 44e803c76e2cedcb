"""The upstream's groups of which this process knows. Their offsets are the upstream's, too.

These are streams groups, and groups of the consumer protocol if kshim passes those on.
"""

from __future__ import annotations

from typing import Final

from kshim.callers.bounded import forget_first

MOST: Final = 10_000


class TheirGroups:
    """Their ids; the latest ones if there are many."""

    def __init__(self, *, has_consumers: bool = False) -> None:
        """has_consumers: True if groups of the consumer protocol are the upstream's."""
        self.has_consumers = has_consumers
        self._ids: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._ids)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._ids

    def note(self, group_id: str) -> None:
        """Remember a group."""
        self._ids.pop(group_id, None)
        self._ids[group_id] = None
        forget_first(self._ids, MOST)

    def forget(self, group_id: str) -> None:
        """Forget a group, which may be kshim's from now on."""
        self._ids.pop(group_id, None)
