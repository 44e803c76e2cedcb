"""What each of many has used of a quota; who has used nothing lately is forgotten.

Clients choose their client ids, so no more than MOST are known: of more, those who used it longest ago are
forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

MOST = 5_000


class Idle(Protocol):
    """What can be forgotten."""

    def is_idle(self, now_ms: int) -> bool:
        """Whether it is as good as new."""


T = TypeVar("T", bound=Idle)


class Used(Generic[T]):
    """A rate, or a bucket, for each who shares a quota."""

    def __init__(self, new: Callable[[], T]) -> None:
        self._new = new
        self._by_hash: dict[int, T] = {}
        """Names may be long, so their hashes stand for them. Who used it longest ago is first."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def of(self, who: Hashable, now_ms: int) -> T:
        """That of `who`, which is new if nothing of it is known."""
        key = hash(who)
        used = self._by_hash.pop(key, None)
        if used is None:
            self._forget(now_ms)
            used = self._new()
        self._by_hash[key] = used
        return used

    def _forget(self, now_ms: int) -> None:
        """Make room for one more."""
        while self._by_hash:
            first = next(iter(self._by_hash))
            if len(self._by_hash) < MOST and not self._by_hash[first].is_idle(now_ms):
                return
            del self._by_hash[first]
