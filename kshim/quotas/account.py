"""One request of a client that has quotas: what it uses of them, and how long its client must wait for that.

The answer leaves at once, with throttle_time_ms, and its connection is muted for that time (KIP-219).
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
    """What was used of the quotas of one broker's clients."""

    window: Window
    rates: Mapping[str, Used[Rate]]
    """By the names of the quotas."""
    mutations: Used[TokenBucket]
    now_ms: Callable[[], int]
    timer_s: Callable[[], float]
    """What the time that a request takes is measured with."""


class Account:
    """What one request uses."""

    __slots__ = ("_began_s", "_limits", "_since_ms", "_spent_s", "_usage", "limited_by", "throttle_ms")

    def __init__(self, limits: Mapping[str, Limit], usage: Usage, began_s: float) -> None:
        """limits: by the names of the quotas. began_s: when the request was begun, by `usage.timer_s`."""
        self._limits = limits
        self._usage = usage
        self._began_s = began_s
        self._spent_s: float | None = None
        self._since_ms = 0
        self.throttle_ms = 0
        """How long the client must wait, for all that was counted."""
        self.limited_by = ""
        """The quota that wants it."""

    def put_aside(self) -> None:
        """The request waits for something from now on: the time until its answer does not count."""
        if self._spent_s is None:
            self._spent_s = self._usage.timer_s() - self._began_s

    def answered(self, *, counts_time: bool = True) -> None:
        """Count the time of the thread that the request has taken. Once, when its answer is made.

        100 % is all the time of the server's one thread. A client waits one sample at most, as in Kafka. The
        wait for what was counted before is partly over.
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
        """Count a Produce, with all its bytes but the four of its size."""
        self._record(PRODUCER_RATE, size)

    @property
    def most_fetched_bytes(self) -> int:
        """What a Fetch may be answered: for more its client would have to wait, whatever came before."""
        limit = self._limits.get(CONSUMER_RATE)
        if limit is None:
            return MOST_BYTES
        window = self._usage.window
        return int(min(limit.per_s * (window.samples - 1) * window.sample_ms / 1000, MOST_BYTES))

    def fetched(self, size: int) -> None:
        """Count the answer to a Fetch: its time, and its bytes, of which four are those of its size.

        If the client must wait, it is answered without records, and the bytes do not count.
        """
        self.answered()
        self._record(CONSUMER_RATE, size)
        limit = self._limits.get(CONSUMER_RATE)
        if limit is not None and self.throttle_ms:
            now_ms = self._usage.now_ms()
            self._usage.rates[CONSUMER_RATE].of(limit.who, now_ms).record(-size, now_ms)

    def mutated(self, partitions: int, *, strict: bool, waits: bool = True) -> Refusal | None:
        """Count partitions that are to be made or deleted; the refusal if they must not be.

        strict: they must not be, and do not count, while tokens are owed. waits: the client has to wait until
        none are.
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
