"""Static members that were replaced lately. If one of their old ids is heard of again, two programs live."""

from __future__ import annotations

from kshim.coordination.groups.rebalance_record import Who

MOST = 20
"""Most members of a group that are remembered; the first are forgotten."""


class Replaced:
    """The clients that had a place, and those that took it, by the old member id."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[Who, Who]] = {}

    def add(self, before: Who, after: Who) -> None:
        """Remember a member that is replaced."""
        self._by_id[before.member_id] = before, after
        if len(self._by_id) > MOST:
            del self._by_id[next(iter(self._by_id))]

    def take(self, member_id: str) -> tuple[Who, Who] | None:
        """Return what is known about an old id, and forget it."""
        return self._by_id.pop(member_id, None)
