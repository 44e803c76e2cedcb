"""The time of groups, transactions and records, which people may move ahead or hold.

    reactor ── seconds ──▶ SteeredClock ── seconds, callLater ──▶ coordinators, cleaning, timestamps

Until it is steered it is the reactor's clock: `seconds` is the reactor's own function. To move it ahead is
one jump. What came due meanwhile is called after it, in the order of its time, and is told the time after the
jump: a session or a rebalance that begins then has its whole time-out before it. If it were told the moment
at which it was due, that session could be over before its client had a chance to say a word. Time never goes
back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshim.storage.clock import Clock


class SteeredCall:
    """A call that is to come."""

    __slots__ = ("_arguments", "_clock", "_function", "_keywords", "_scheduled", "at_s")

    def __init__(
        self,
        clock: SteeredClock,
        at_s: float,
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        self.at_s = at_s
        """In the steered clock's time."""
        self._clock = clock
        self._function, self._arguments, self._keywords = function, arguments, keywords
        self._scheduled: Any = None
        """The reactor's call; None while time stands still before it."""

    def cancel(self) -> None:
        """Do not make it; it must not have been made."""
        self._clock.forget(self)
        self.put_off()

    def schedule(self, reactor: Clock, delay_s: float) -> None:
        """Make it in `delay_s` of the reactor's time, and not before."""
        self.put_off()
        self._scheduled = reactor.callLater(delay_s, self._make)

    def put_off(self) -> None:
        """Do not make it until it is scheduled."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _make(self) -> None:
        self._scheduled = None
        self._clock.forget(self)
        self._function(*self._arguments, **self._keywords)


class SteeredClock:
    """Implements `kshim.storage.clock.Clock`."""

    def __init__(self, reactor: Clock) -> None:
        self._reactor = reactor
        self._ahead_s = 0.0
        self._held_at_s: float | None = None
        self._calls: dict[SteeredCall, None] = {}
        self.seconds: Callable[[], float] = reactor.seconds

    @property
    def ahead_s(self) -> float:
        """How far it is ahead of the reactor's clock; below zero after it was held."""
        return self.seconds() - self._reactor.seconds()

    @property
    def is_held(self) -> bool:
        return self._held_at_s is not None

    @property
    def is_behind(self) -> bool:
        """Whether a call is due that has not been made."""
        return any(call.at_s <= self.seconds() for call in self._calls)

    # ---- calls

    def callLater(
        self, delay: float, callable: Callable[..., object], *arguments: Any, **keywords: Any
    ) -> SteeredCall:
        """As the reactor's, in this clock's seconds."""
        call = SteeredCall(self, self.seconds() + delay, callable, arguments, keywords)
        self._calls[call] = None
        if self._held_at_s is None or delay <= 0:
            call.schedule(self._reactor, delay)
        return call

    def forget(self, call: SteeredCall) -> None:
        """It is made, or will not be made."""
        del self._calls[call]

    # ---- steering

    def advance(self, seconds: float) -> None:
        """Move ahead at once. What is due then is called in the next turn of the reactor."""
        assert seconds >= 0
        if self._held_at_s is not None:
            self._held_at_s += seconds
        else:
            self._ahead_s += seconds
            self.seconds = self._moved
        self._schedule_anew()

    def hold(self) -> None:
        """Let time stand still: only what is due already is still called."""
        if self._held_at_s is None:
            self._held_at_s = self.seconds()
            self.seconds = self._held
            self._schedule_anew()

    def resume(self) -> None:
        """Let time go on from where it stands."""
        if self._held_at_s is not None:
            self._ahead_s = self._held_at_s - self._reactor.seconds()
            self._held_at_s = None
            self.seconds = self._moved
            self._schedule_anew()

    def _moved(self) -> float:
        return self._reactor.seconds() + self._ahead_s

    def _held(self) -> float:
        assert self._held_at_s is not None
        return self._held_at_s

    def _schedule_anew(self) -> None:
        """In the order of their time, in which the reactor makes those that are due."""
        for call in sorted(self._calls, key=lambda each: each.at_s):
            left_s = max(call.at_s - self.seconds(), 0)
            if self._held_at_s is None or left_s == 0:
                call.schedule(self._reactor, left_s)
            else:
                call.put_off()
