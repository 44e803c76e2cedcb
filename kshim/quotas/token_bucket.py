"""A bucket of tokens, which is refilled at the rate of a quota; each mutation takes tokens (KIP-599).

A full bucket has the tokens of the whole window, so an administrator may make many topics at once. A mutation
may take more tokens than there are; then the next one waits.
"""

from __future__ import annotations

from kshim.quotas.rate import MOST_THROTTLE_MS, Window, rounded


class TokenBucket:
    """The tokens of the clients that share a quota. Times are in milliseconds, and never go back."""

    __slots__ = ("_full_at_ms", "_tokens", "_updated_ms", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._tokens = 0.0
        self._updated_ms: int | None = None
        """The time of the last refill; None before the first, when the bucket is full."""
        self._full_at_ms = 0

    def take(self, tokens: float, per_s: float, now_ms: int) -> None:
        """Take tokens, even more than there are."""
        self._refill(per_s, now_ms)
        self._tokens -= tokens
        missing = self._window.ms / 1000 * per_s - self._tokens
        self._full_at_ms = now_ms + rounded(missing / per_s * 1000)

    def throttle_ms(self, per_s: float, now_ms: int) -> int:
        """The time until no token is owed; 0 if none is owed now."""
        self._refill(per_s, now_ms)
        return min(rounded(-self._tokens / per_s * 1000), MOST_THROTTLE_MS) if self._tokens < 0 else 0

    def is_idle(self, now_ms: int) -> bool:
        """True if the bucket is full again."""
        return now_ms >= self._full_at_ms

    def _refill(self, per_s: float, now_ms: int) -> None:
        most = self._window.ms / 1000 * per_s
        if self._updated_ms is None:
            self._tokens = most
        else:
            self._tokens = min(most, self._tokens + per_s * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms
