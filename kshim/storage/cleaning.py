"""Removes old records every `log.retention.check.interval.ms`."""

from __future__ import annotations

import logging

from kshim.storage.clock import Call, Clock
from kshim.storage.interfaces import Log, StorageError

logger = logging.getLogger(__name__)


class Cleaning:
    """Calls `Log.clean` at start(), and then every `interval_ms` until stop(), which is for good."""

    def __init__(self, of_log: Log, clock: Clock, interval_ms: int) -> None:
        self._log = of_log
        self._clock = clock
        self._interval_ms = interval_ms
        self._timer: Call | None = None
        self._is_stopped = False

    def start(self) -> None:
        if self._is_stopped:
            return
        try:
            self._log.clean(int(self._clock.seconds() * 1000))
        except StorageError as error:
            logger.error("old records are not removed: %s", error)
        self._timer = self._clock.callLater(self._interval_ms / 1000, self.start)

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
