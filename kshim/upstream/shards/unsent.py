"""Committed offsets that the upstream does not have yet, by shard. A lost shard's offsets are dropped."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

OFFSETS = (b"\0\0", b"\0\1")
"""The first bytes of keys of committed offsets."""


class Unsent(NamedTuple):
    """One offset, with key and value as in the journal."""

    shard: int
    key: bytes
    value: bytes


class UnsentOffsets:
    """The newest offset of each key. The oldest are sent first, and the shards take turns."""

    def __init__(self) -> None:
        self._by_shard: dict[int, dict[bytes, bytes]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_shard.values()))

    def note(self, shard: int, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take the committed offsets among a shard's records; ignore other records."""
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
        """Add an offset, unless its key has one already, which is newer."""
        self._by_shard.setdefault(offset.shard, {}).setdefault(offset.key, offset.value)

    def lose(self, shard: int) -> None:
        """Forget the offsets of a shard that this process no longer leads; its next leader may have newer
        ones.
        """
        self._by_shard.pop(shard, None)

    def first(self, most: int) -> list[Unsent]:
        """Return some offsets to send next. They stay until `remove`."""
        found: list[Unsent] = []
        for shard in tuple(self._by_shard):
            if len(found) == most:
                break
            of_shard = self._by_shard[shard] = self._by_shard.pop(shard)
            of_first = islice(of_shard.items(), most - len(found))
            found += (Unsent(shard, key, value) for key, value in of_first)
        return found

    def has(self, offset: Unsent) -> bool:
        """True if the offset has still to be sent, and there is no newer one."""
        return self._by_shard.get(offset.shard, {}).get(offset.key) is offset.value

    def remove(self, offset: Unsent) -> None:
        """Remove an offset that was sent or must not be; a newer one stays."""
        if self.has(offset):
            of_shard = self._by_shard[offset.shard]
            del of_shard[offset.key]
            if not of_shard:
                del self._by_shard[offset.shard]

    def put_off(self, offset: Unsent) -> None:
        """Send the offset after the others of its shard."""
        if self.has(offset):
            of_shard = self._by_shard[offset.shard]
            of_shard[offset.key] = of_shard.pop(offset.key)
