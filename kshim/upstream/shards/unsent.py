"""Committed offsets that the upstream does not have yet, by shard: one that is lost takes its own along."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

OFFSETS = (b"\0\0", b"\0\1")
"""How the keys of committed offsets begin."""


class Unsent(NamedTuple):
    """One offset, key and value as in the journal."""

    shard: int
    key: bytes
    value: bytes


class UnsentOffsets:
    """The newest of each key. Those that were noted first are sent first, and the shards take turns."""

    def __init__(self) -> None:
        self._by_shard: dict[int, dict[bytes, bytes]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_shard.values()))

    def note(self, shard: int, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take in records of a shard; those that are no offsets are left out."""
        of_shard = self._by_shard.setdefault(shard, {})
        for key, value in entries:
            if key[:2] not in OFFSETS:
                continue
            if value is None:
                of_shard.pop(key, None)
            else:
                of_shard[key] = value
        if not of_shard:
            del self._by_shard[shard]

    def note_older(self, offset: Unsent) -> None:
        """Take in an offset, unless there is one for its key, which is newer."""
        self._by_shard.setdefault(offset.shard, {}).setdefault(offset.key, offset.value)

    def lose(self, shard: int) -> None:
        """Forget those of a shard that is not led here any more; its next leader may have newer ones."""
        self._by_shard.pop(shard, None)

    def first(self, most: int) -> list[Unsent]:
        """Some of them, which stay."""
        found: list[Unsent] = []
        for shard in tuple(self._by_shard):
            if len(found) == most:
                break
            of_shard = self._by_shard[shard] = self._by_shard.pop(shard)
            of_first = islice(of_shard.items(), most - len(found))
            found += (Unsent(shard, key, value) for key, value in of_first)
        return found

    def has(self, offset: Unsent) -> bool:
        """Whether it is still to be sent, and there is nothing newer."""
        return self._by_shard.get(offset.shard, {}).get(offset.key) is offset.value

    def remove(self, offset: Unsent) -> None:
        """It was sent, or is not to be; what is newer stays."""
        if self.has(offset):
            of_shard = self._by_shard[offset.shard]
            del of_shard[offset.key]
            if not of_shard:
                del self._by_shard[offset.shard]

    def put_off(self, offset: Unsent) -> None:
        """Send it after the others of its shard."""
        if self.has(offset):
            of_shard = self._by_shard[offset.shard]
            of_shard[offset.key] = of_shard.pop(offset.key)
