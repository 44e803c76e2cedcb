"""Handshakes of TLS take turns: a few milliseconds of them, then all other clients.

A handshake costs up to half a millisecond of processor time, some thirty times what a small request costs,
and whoever asks for one pays next to nothing. So steps that wait are kept by the address of their client, and
one of each address is done before the second of any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter

from kshim.storage.clock import Clock

SLICE_S = 0.005
"""A slice ends when it has taken so long; a step may take it half a millisecond further."""


class Handshakes:
    """The steps that are due, of all listeners."""

    def __init__(self, clock: Clock, seconds: Callable[[], float] = perf_counter) -> None:
        """clock: says when all others have had their turn. seconds: how the time of a step is measured."""
        self._clock = clock
        self._seconds = seconds
        self._due: dict[str, deque[Callable[[], None]]] = {}  # by address, in turn
        self._spent_s = 0.0  # since others had their turn
        self._is_next_planned = False

    def add(self, host: str, step: Callable[[], None]) -> None:
        """Do a step for a client at `host`: now, if there is time left, else in its turn."""
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
