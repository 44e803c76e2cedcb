"""Who consumes which partition, as the clients know it, and for how long nobody does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """A time in which something did not happen: a partition had no owner, or a member no partition."""

    begin_ms: int
    end_ms: int

    @property
    def ms(self) -> int:
        return self.end_ms - self.begin_ms


class Ledger:
    """Takes what members gain and lose, in the order of time. A static member's name outlives its restart."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.changed_ms = 0
        """When a member last gained or lost a partition."""
        self._owners: list[set[str]] = [set() for _ in range(partitions)]
        self._last: list[str | None] = [None] * partitions
        self._free_ms: dict[int, int] = dict.fromkeys(range(partitions), 0)
        """Since when each partition has no owner."""
        self._idle_ms: dict[str, int] = {}
        """Since when each live member has no partition."""
        self._held: dict[str, set[int]] = {}
        self._unowned: list[Span] = []
        self._paused: list[Span] = []
        self._moves: list[int] = []

    def starts(self, member: str, now_ms: int) -> None:
        """A member's process starts."""
        self._held[member] = set()
        self._idle_ms[member] = now_ms

    def ends(self, member: str, now_ms: int) -> None:
        """A member's process is gone, and consumes nothing any more."""
        self.loses(member, tuple(self._held.get(member, ())), now_ms)
        self._idle_ms.pop(member, None)

    def gains(self, member: str, partitions: Iterable[int], now_ms: int) -> None:
        """A member begins to consume partitions."""
        held = self._held[member]
        for partition in partitions:
            held.add(partition)
            self.changed_ms = now_ms
            self._owners[partition].add(member)
            if partition in self._free_ms:
                self._unowned.append(Span(self._free_ms.pop(partition), now_ms))
            if self._last[partition] not in (None, member):
                self._moves.append(now_ms)
            self._last[partition] = member
        if held and member in self._idle_ms:
            self._paused.append(Span(self._idle_ms.pop(member), now_ms))

    def loses(self, member: str, partitions: Iterable[int], now_ms: int) -> None:
        """A member consumes partitions no more."""
        held = self._held.get(member, set())
        for partition in partitions:
            if partition not in held:
                continue
            held.remove(partition)
            self.changed_ms = now_ms
            self._owners[partition].discard(member)
            if not self._owners[partition]:
                self._free_ms[partition] = now_ms
        if not held and member in self._held:
            self._idle_ms.setdefault(member, now_ms)

    def holds(self, member: str) -> frozenset[int]:
        """The partitions that a member consumes."""
        return frozenset(self._held.get(member, ()))

    @property
    def is_complete(self) -> bool:
        """True if every partition has an owner."""
        return not self._free_ms

    def unowned(self, begin_ms: int, end_ms: int) -> list[Span]:
        """The times in which a partition had no owner, cut to [begin_ms, end_ms]."""
        open_ones = (Span(since_ms, end_ms) for since_ms in self._free_ms.values())
        return _cut((*self._unowned, *open_ones), begin_ms, end_ms)

    def paused(self, begin_ms: int, end_ms: int) -> list[Span]:
        """The times that ended in [begin_ms, end_ms] in which a live member had no partition."""
        return [span for span in self._paused if begin_ms < span.end_ms <= end_ms and span.ms > 0]

    def moves(self, begin_ms: int) -> int:
        """How often a partition was gained by another member than its last one, from `begin_ms` on."""
        return sum(at_ms >= begin_ms for at_ms in self._moves)


def _cut(spans: Iterable[Span], begin_ms: int, end_ms: int) -> list[Span]:
    cut = (Span(max(span.begin_ms, begin_ms), min(span.end_ms, end_ms)) for span in spans)
    return sorted(span for span in cut if span.ms > 0)
