"""The memory of all connections: replies that clients have not read, and requests that wait for an answer.

A Fetch is answered with at most half of what is left. So clients that read nothing get less and less, and all
others are still served.
"""

from __future__ import annotations

from kshim.storage.clock import Clock

MOST_BYTES = 128 * 1024 * 1024
LEAST_ANSWER_BYTES = 64 * 1024
MOST_ANSWER_BYTES = 16 * 1024 * 1024
"""Also for all answers of one turn of the reactor: to read and to copy as much takes some 20 ms."""


class Unread:
    """Counts bytes: connections add and remove what is not read; a Fetch tells what it took from the log."""

    __slots__ = ("_clock", "_taken_bytes", "bytes")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._taken_bytes = 0  # in this turn of the reactor
        self.bytes = 0

    def answer_bytes(self) -> int:
        """How many bytes of records an answer may have now, besides its first batch."""
        most = min((MOST_BYTES - self.bytes) // 2, MOST_ANSWER_BYTES - self._taken_bytes)
        return max(LEAST_ANSWER_BYTES, most)

    def taken(self, taken_bytes: int) -> None:
        """Count what was taken from the log until others have had their turn."""
        if taken_bytes <= LEAST_ANSWER_BYTES:
            return
        if not self._taken_bytes:
            self._clock.callLater(0, self._begin_turn)
        self._taken_bytes += taken_bytes

    def _begin_turn(self) -> None:
        self._taken_bytes = 0
