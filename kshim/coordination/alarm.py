"""Runs a coordinator's due work, at most 10 ms per turn, so that requests are not starved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from kshim.storage.clock import Call, Clock

logger = logging.getLogger(__name__)

LONGEST_TURN_MS = 10
"""How long due work may run, in ms. Then requests get their turn, and the rest of the due work follows."""
PAUSE_MS = 1_000
"""The pause after a bug has made due work fail, in ms, so that retries do not take all the time."""


class Alarm:
    """Keeps one call scheduled, for the next deadline or earlier."""

    def __init__(
        self,
        clock: Clock,
        next_deadline_ms: Callable[[], int | None],
        due: Callable[[int], Iterator[object]],
        real_clock: Clock | None = None,
    ) -> None:
        """next_deadline_ms: returns the next deadline, or None if there is none. due: does the work that is
        due at the given time, one step for each item of its iterator; steps that are left when the turn is
        over stay due. real_clock: measures the turns; `clock` may stand still.
        """
        self._clock = clock
        self._real_clock = real_clock or clock
        self._next_deadline_ms = next_deadline_ms
        self._due = due
        self._call: Call | None = None
        self._call_at_ms = 0
        self._not_before_ms = 0

    @property
    def at_ms(self) -> int | None:
        """When the scheduled call is made; None if none is scheduled."""
        return None if self._call is None else self._call_at_ms

    def set(self) -> None:
        """Schedule the call for the next deadline, unless it is scheduled for an earlier time already."""
        deadline_ms = self._next_deadline_ms()
        if deadline_ms is None:
            return
        deadline_ms = max(deadline_ms, self._not_before_ms)
        if self._call is not None and self._call_at_ms <= deadline_ms:
            return
        self.cancel()
        self._call_at_ms = deadline_ms
        self._call = self._clock.callLater(max(deadline_ms / 1000 - self._clock.seconds(), 0), self._go_off)

    def cancel(self) -> None:
        """Cancel the scheduled call, if there is one."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _go_off(self) -> None:
        self._call = None
        now_ms = int(self._clock.seconds() * 1000)
        over_s = self._real_clock.seconds() + LONGEST_TURN_MS / 1000
        try:
            for _ in self._due(now_ms):
                if self._real_clock.seconds() >= over_s:
                    break
        except Exception:
            logger.exception("due work has failed; trying again in %d ms", PAUSE_MS)
            self._not_before_ms = now_ms + PAUSE_MS
        self.set()
