"""TLS handshakes take turns: a few milliseconds of them, then all other clients.

A handshake costs up to half a millisecond of processor time, some thirty times what a small request costs,
and next to nothing for the client that asks for one. So steps that wait are kept by client address, and one
step of each address is done before the second of any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter

from kshim.storage.clock import Clock

SLICE_S = 0.005
"""A slice ends after so long; its last step may take half a millisecond more."""


class Handshakes:
    """The due steps of all listeners."""

    def __init__(self, clock: Clock, seconds: Callable[[], float] = perf_counter) -> None:
        """clock: calls back when all others have had their turn. seconds: measures the time of a step."""
        self._clock = clock
        self._seconds = seconds
        self._due: dict[str, deque[Callable[[], None]]] = {}  # by address, in turn
        self._spent_s = 0.0  # since others last had their turn
        self._is_next_planned = False

    def add(self, host: str, step: Callable[[], None]) -> None:
        """Do a step for a client at `host`: now, if the slice has time left, else in its turn."""
        self._due.setdefault(host, deque()).append(step)
        self._work()

    def _work(self) -> None:
        while self._due and self._spent_s < SLICE_S:
            host = next(iter(self._due))
            steps = self._due.pop(host)
            step = steps.popleft()
            if steps:
                self._due[host] = steps  # behind the other addresses
            began_s = self._seconds()
            step()
            self._spent_s += self._seconds() - began_s
        if not self._is_next_planned:
            self._is_next_planned = True
            self._clock.callLater(0, self._go_on)

    def _go_on(self) -> None:
        self._is_next_planned = False
        self._spent_s = 0.0
        if self._due:
            self._work()
