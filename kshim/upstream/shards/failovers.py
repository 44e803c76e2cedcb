"""Counts the shards that are taken over and lost, and says each failover in one line, however many shards it
moves.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from kshim.storage.clock import Timer, TimerClock

logger = logging.getLogger(__name__)

GATHER_S = 1.0
"""What happens within so long goes into one line: the shards of one process are taken over about together."""


class Failovers:
    """The failovers that this process has seen."""

    def __init__(self, clock: TimerClock, topic: str, now_led: Callable[[], str]) -> None:
        """topic: the one whose partitions are the shards. now_led: returns how many are led now, e.g. "50 of
        50".
        """
        self.taken_over = 0
        """How often this process has begun to lead a shard."""
        self.lost = 0
        """How often it has lost one without having released it."""
        self._clock = clock
        self._topic = topic
        self._now_led = now_led
        self._newly_led = 0
        self._reasons: Counter[str] = Counter()
        """The number of shards lost since the last line, by reason."""
        self._timer: Timer | None = None

    def led(self) -> None:
        """Note that a shard was taken over."""
        self.taken_over += 1
        self._newly_led += 1
        self._say_soon()

    def no_longer_led(self, why: str) -> None:
        """Note that a shard was lost."""
        self.lost += 1
        self._reasons[why] += 1
        self._say_soon()

    def stop(self) -> None:
        """Say what was not said yet."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
            self._say()

    def _say_soon(self) -> None:
        if self._timer is None:
            self._timer = self._clock.callLater(GATHER_S, self._say)

    def _say(self) -> None:
        self._timer = None
        reasons, self._reasons = self._reasons, Counter()
        newly_led, self._newly_led = self._newly_led, 0
        if reasons:
            whys = ", ".join(f"{why} ({count})" for why, count in reasons.most_common())
            logger.warning("lost %d shards of %s: %s", reasons.total(), self._topic, whys)
        if newly_led:
            logger.info("took over %d shards of %s; leads %s", newly_led, self._topic, self._now_led())
