"""Looking, every log.retention.check.interval.ms, which records have become old enough to go."""

from __future__ import annotations

import logging
from typing import Any

from kshim.storage.clock import Clock
from kshim.storage.interfaces import Log, StorageError

logger = logging.getLogger(__name__)


class Cleaning:
    """From start() to stop(). The first look is at the start."""

    def __init__(self, of_log: Log, clock: Clock, interval_ms: int) -> None:
        self._log = of_log
        self._clock = clock
        self._interval_ms = interval_ms
        self._timer: Any = None

    def start(self) -> None:
        try:
            self._log.clean(int(self._clock.seconds() * 1000))
        except StorageError as error:
            logger.error("no records are cleaned: %s", error)
        self._timer = self._clock.callLater(self._interval_ms / 1000, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
