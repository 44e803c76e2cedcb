"""One request of a client with quotas: how much it uses of them, and how long its client must wait for that.

The answer is sent at once, with throttle_time_ms, and its connection is muted for that time (KIP-219).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kshim.cluster.checks import Refusal
from kshim.cluster.client_quotas import CONSUMER_RATE, MUTATION_RATE, PRODUCER_RATE, REQUEST_PERCENTAGE
from kshim.quotas.levels import Limit
from kshim.quotas.rate import MOST_THROTTLE_MS, Rate, Window
from kshim.quotas.token_bucket import TokenBucket
from kshim.quotas.used import Used
from schemas.error_code import ErrorCode

MOST_BYTES: Final = 2**31 - 1
EXCEEDED: Final = Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)


class Usage(NamedTuple):
    """The use of the quotas of one broker's clients."""

    window: Window
    rates: Mapping[str, Used[Rate]]
    """The rates by the name of the quota."""
    mutations: Used[TokenBucket]
    now_ms: Callable[[], int]
    timer_s: Callable[[], float]
    """The clock that measures how long a request takes."""


class Account:
    """The use of quotas by one request."""

    __slots__ = ("_began_s", "_limits", "_since_ms", "_spent_s", "_usage", "limited_by", "throttle_ms")

    def __init__(self, limits: Mapping[str, Limit], usage: Usage, began_s: float) -> None:
        """limits: by the name of the quota. began_s: when the request was begun, by `usage.timer_s`."""
        self._limits = limits
        self._usage = usage
        self._began_s = began_s
        self._spent_s: float | None = None
        self._since_ms = 0
        self.throttle_ms = 0
        """How long the client must wait for all that was counted so far."""
        self.limited_by = ""
        """The name of the quota that makes the client wait for so long."""

    def put_aside(self) -> None:
        """Stop the request's clock: from now on it waits for something, and that time does not count."""
        if self._spent_s is None:
            self._spent_s = self._usage.timer_s() - self._began_s

    def answered(self, *, counts_time: bool = True) -> None:
        """Count the thread's time that the request has taken. Called when its answer is made; a second call
        has no effect.

        100 % is all the time of the server's one thread. As in Kafka, the client waits for it at most one
        sample. Waits that were counted earlier become shorter by the time that has passed since.
        """
        if self._began_s < 0:
            return
        self.put_aside()
        self._began_s = -1
        if self.throttle_ms:
            self.throttle_ms = max(0, self.throttle_ms - (self._usage.now_ms() - self._since_ms))
        if counts_time:
            self._record(REQUEST_PERCENTAGE, 100 * (self._spent_s or 0), self._usage.window.sample_ms)

    def produced(self, size: int) -> None:
        """Count a Produce request. size: its bytes without the four of its size field."""
        self._record(PRODUCER_RATE, size)

    @property
    def most_fetched_bytes(self) -> int:
        """The largest answer to a Fetch, in bytes. For a larger one the client would have to wait even if it
        had used nothing before.
        """
        limit = self._limits.get(CONSUMER_RATE)
        if limit is None:
            return MOST_BYTES
        window = self._usage.window
        return int(min(limit.per_s * (window.samples - 1) * window.sample_ms / 1000, MOST_BYTES))

    def fetched(self, size: int) -> None:
        """Count the time and the bytes of an answer to a Fetch. size: includes the four bytes of its size
        field.

        If the client must wait, it gets an answer without records, and the bytes do not count.
        """
        self.answered()
        self._record(CONSUMER_RATE, size)
        limit = self._limits.get(CONSUMER_RATE)
        if limit is not None and self.throttle_ms:
            now_ms = self._usage.now_ms()
            self._usage.rates[CONSUMER_RATE].of(limit.who, now_ms).record(-size, now_ms)

    def mutated(self, partitions: int, *, strict: bool, waits: bool = True) -> Refusal | None:
        """Count partitions before they are made or deleted. Returns a refusal if that must not happen now.

        strict: while tokens are owed, refuse the partitions and do not count them. waits: the client must
        wait until no token is owed.
        """
        limit = self._limits.get(MUTATION_RATE)
        if limit is None:
            return None
        now_ms = self._usage.now_ms()
        bucket = self._usage.mutations.of(limit.who, now_ms)
        if not strict:
            bucket.take(partitions, limit.per_s, now_ms)
        throttle_ms = bucket.throttle_ms(limit.per_s, now_ms)
        if waits:
            self._wait(MUTATION_RATE, throttle_ms, now_ms)
        if strict and throttle_ms:
            return EXCEEDED
        if strict:
            bucket.take(partitions, limit.per_s, now_ms)
        return None

    def _record(self, name: str, value: float, most_ms: int = MOST_THROTTLE_MS) -> None:
        limit = self._limits.get(name)
        if limit is not None:
            now_ms = self._usage.now_ms()
            rate = self._usage.rates[name].of(limit.who, now_ms)
            rate.record(value, now_ms)
            self._wait(name, min(rate.throttle_ms(limit.per_s, now_ms), most_ms), now_ms)

    def _wait(self, name: str, throttle_ms: int, now_ms: int) -> None:
        if throttle_ms > self.throttle_ms:
            self.throttle_ms, self._since_ms, self.limited_by = throttle_ms, now_ms, name
