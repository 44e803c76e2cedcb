"""The records that a group has processed, each by partition and offset: which is missing, or came twice?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping


class OffsetsSeen:
    """Memory grows with what is missing, not with what was seen."""

    def __init__(self, name: str) -> None:
        self.twice: list[str] = []
        """The records that came again. A reader of copies must find none; other groups may read twice."""
        self.count = 0
        self._name = name
        self._next: dict[int, int] = defaultdict(int)
        """The first offset that is missing, by partition."""
        self._above: dict[int, set[int]] = defaultdict(set)
        """The offsets that were seen above it."""

    def note(self, partition: int, offset: int) -> None:
        above = self._above[partition]
        if offset < self._next[partition] or offset in above:
            self.twice.append(f"{self._name}: record {partition}-{offset} came again")
            return
        self.count += 1
        above.add(offset)
        while self._next[partition] in above:
            above.remove(self._next[partition])
            self._next[partition] += 1

    def covers(self, ends: Mapping[int, int]) -> bool:
        """True if all records before these offsets were seen."""
        return all(self._next[partition] >= end for partition, end in ends.items())

    def missing(self, ends: Mapping[int, int]) -> list[str]:
        """The first record that is missing before these offsets, of each partition."""
        return [
            f"{self._name}: record {partition}-{self._next[partition]} is missing, of {end}"
            for partition, end in sorted(ends.items())
            if self._next[partition] < end
        ]

    def report(self) -> str:
        return f"the first that are missing: {dict(self._next)}"
