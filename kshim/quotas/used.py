"""The use of a quota by many users or clients. Those without recent use are forgotten.

Clients choose their client ids, so at most MOST entries are kept. Beyond that, the entry used longest ago is
forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

MOST = 5_000


class Idle(Protocol):
    """A counter that can be forgotten once it is idle."""

    def is_idle(self, now_ms: int) -> bool:
        """True if it is equal to a new one."""


T = TypeVar("T", bound=Idle)


class Used(Generic[T]):
    """A rate, or a bucket, for each user or client that has a quota."""

    def __init__(self, new: Callable[[], T]) -> None:
        self._new = new
        self._by_hash: dict[int, T] = {}
        """Entries by the hash of a name, because names may be long. The entry used longest ago is first."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def of(self, who: Hashable, now_ms: int) -> T:
        """The entry of `who`; a new one if there is none."""
        key = hash(who)
        used = self._by_hash.pop(key, None)
        if used is None:
            self._forget(now_ms)
            used = self._new()
        self._by_hash[key] = used
        return used

    def _forget(self, now_ms: int) -> None:
        """Remove the oldest entries while they are idle, and enough of them to make room for one more."""
        while self._by_hash:
            first = next(iter(self._by_hash))
            if len(self._by_hash) < MOST and not self._by_hash[first].is_idle(now_ms):
                return
            del self._by_hash[first]
