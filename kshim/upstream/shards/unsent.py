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


class _Held(NamedTuple):
    """The value of a key, and since when the upstream lacks a value that was committed for it."""

    value: bytes
    noted_s: float
    since_s: float


class UnsentOffsets:
    """The newest offset of each key. The oldest are sent first, and the shards take turns."""

    def __init__(self) -> None:
        self._by_shard: dict[int, dict[bytes, _Held]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_shard.values()))

    def oldest_s(self) -> float | None:
        """Return since when the upstream lacks an offset of some key; None if it has all."""
        return min((held.since_s for keys in self._by_shard.values() for held in keys.values()), default=None)

    def note(self, shard: int, entries: Iterable[tuple[bytes, bytes | None]], now_s: float) -> None:
        """Take the committed offsets among a shard's records; ignore other records."""
        of_shard = self._by_shard.setdefault(shard, {})
        for key, value in entries:
            if key[:2] not in OFFSETS:
                continue
            if value is None:
                of_shard.pop(key, None)
            else:
                of_shard[key] = _Held(value, now_s, of_shard[key].since_s if key in of_shard else now_s)
        if not of_shard:
            del self._by_shard[shard]

    def note_older(self, offset: Unsent, now_s: float) -> None:
        """Add an offset, unless its key has one already, which is newer."""
        self._by_shard.setdefault(offset.shard, {}).setdefault(offset.key, _Held(offset.value, now_s, now_s))

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
            found += (Unsent(shard, key, held.value) for key, held in of_first)
        return found

    def lacks(self, shard: int, key: bytes) -> bool:
        """True if an offset of this key has still to be sent."""
        return key in self._by_shard.get(shard, {})

    def has(self, offset: Unsent) -> bool:
        """True if the offset has still to be sent, and there is no newer one."""
        held = self._by_shard.get(offset.shard, {}).get(offset.key)
        return held is not None and held.value is offset.value

    def remove(self, offset: Unsent) -> None:
        """Remove an offset that was sent or must not be; a newer one stays."""
        of_shard = self._by_shard.get(offset.shard, {})
        held = of_shard.get(offset.key)
        if held is None:
            return
        if held.value is not offset.value:
            of_shard[offset.key] = held._replace(since_s=held.noted_s)
            return
        del of_shard[offset.key]
        if not of_shard:
            del self._by_shard[offset.shard]

    def put_off(self, offset: Unsent) -> None:
        """Send the offset after the others of its shard."""
        if self.has(offset):
            of_shard = self._by_shard[offset.shard]
            of_shard[offset.key] = of_shard.pop(offset.key)
