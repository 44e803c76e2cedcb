"""Lines that are logged once, however often a client that is set up wrongly tries again."""

from __future__ import annotations

import logging
from collections.abc import Hashable

from kshim.requests.bounded import forget_first
from kshim.storage.clock import Clock

SILENT_S = 600.0
"""A client tries again up to twenty times a second, for ever."""
MOST_CAUSES = 1_000


class Once:
    """Knows what was logged lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[Hashable, float] = {}  # when, in seconds; what was told first is first

    def level(self, cause: Hashable) -> int:
        """The level at which to log a line about `cause` now: WARNING, and then DEBUG for SILENT_S."""
        now_s = self._clock.seconds()
        if now_s < self._told.get(cause, -SILENT_S) + SILENT_S:
            return logging.DEBUG
        self._told.pop(cause, None)
        self._told[cause] = now_s
        forget_first(self._told, MOST_CAUSES)
        return logging.WARNING
