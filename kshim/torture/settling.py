"""Says when a program that drains its records has had time enough. Pure: no clock."""

from __future__ import annotations

from typing import Final

MOST: Final = 4
"""A program that moves all the time may take so many times as long as one that stands still."""


class Patience:
    """The time for a program to drain everything. It begins anew whenever the program has got further, so
    that a busy machine does not make a slow program look stuck.
    """

    def __init__(self, settle_s: float, now_s: float) -> None:
        """settle_s: how long a program may stand still."""
        self._settle_s = settle_s
        self._last_s = now_s + MOST * settle_s
        self._end_s = now_s + settle_s
        self._furthest = 0

    def saw(self, how_far: int, now_s: float) -> None:
        """Take note of how far the program is: a number that rises with each record that is new."""
        if how_far > self._furthest:
            self._furthest = how_far
            self._end_s = min(now_s + self._settle_s, self._last_s)

    def is_over(self, now_s: float) -> bool:
        """True if the program had time enough."""
        return now_s >= self._end_s
