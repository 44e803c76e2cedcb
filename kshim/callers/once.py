"""Lines that are logged once, however often a client that is set up wrongly tries again."""

from __future__ import annotations

import logging
from collections.abc import Hashable

from kshim.callers.bounded import forget_first
from kshim.storage.clock import Clock

SILENT_S = 600.0
"""A client tries again up to twenty times a second, for ever."""
MOST_CAUSES = 1_000
MOST_NAMES = 20
"""Lines about one cause within SILENT_S: a client may send another client id each time."""


class Once:
    """Remembers what was logged lately, as hashes: clients choose the names, which may be long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged: dict[int, float] = {}
        """When each cause with its names was logged, in seconds; the earliest is first."""
        self._counts: dict[int, tuple[float, int]] = {}
        """How many lines each cause had, and when the first of them was logged."""

    def level(self, cause: Hashable, names: Hashable = None) -> int:
        """The level at which to log a line about `cause` now: WARNING, and then DEBUG for SILENT_S.

        names: the client id and the group of the line, for example. Each of these is logged once, up to
        MOST_NAMES.
        """
        now_s = self._clock.seconds()
        line = hash((cause, names))
        if now_s < self._logged.get(line, -SILENT_S) + SILENT_S:
            return logging.DEBUG
        if not self._has_room(hash(cause), now_s):
            return logging.DEBUG
        self._logged.pop(line, None)
        self._logged[line] = now_s
        forget_first(self._logged, MOST_CAUSES)
        return logging.WARNING

    def _has_room(self, cause: int, now_s: float) -> bool:
        """Count one more line about a cause; False if it has had MOST_NAMES lately."""
        since_s, count = self._counts.get(cause, (now_s, 0))
        if now_s >= since_s + SILENT_S:
            since_s, count = now_s, 0
        if count >= MOST_NAMES:
            return False
        self._counts.pop(cause, None)
        self._counts[cause] = since_s, count + 1
        forget_first(self._counts, MOST_CAUSES)
        return True
