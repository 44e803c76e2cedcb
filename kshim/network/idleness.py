"""Closes a connection that has been idle for too long. Requests move no timer: they only note the time."""

from __future__ import annotations

from typing import Protocol

from kshim.storage.clock import Timer, TimerClock


class Idle(Protocol):
    """A connection that may be idle."""

    active_at: float
    """When a request or a reply last moved."""

    @property
    def is_closing(self) -> bool: ...
    def close_idle(self) -> None: ...
    def abort(self) -> None: ...


class Idleness:
    """Watches one connection from its beginning on."""

    def __init__(self, connection: Idle, clock: TimerClock, max_idle_ms: int) -> None:
        """max_idle_ms: -1 for ever."""
        self._connection = connection
        self._clock = clock
        self._max_idle_s = max_idle_ms / 1000
        self._timer: Timer | None = None
        if max_idle_ms >= 0:
            self._look()

    def stop(self) -> None:
        """Watch no more: the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Close the connection if it has been idle too long, else look again when it may be."""
        self._timer = None
        connection = self._connection
        left_s = connection.active_at + self._max_idle_s - self._clock.seconds()
        if left_s > 0:
            self._timer = self._clock.callLater(left_s, self._look)
        elif connection.is_closing:  # the client still has not read its last replies
            connection.abort()
        else:
            connection.active_at = self._clock.seconds()
            connection.close_idle()
            self._look()
