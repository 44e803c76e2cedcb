"""The time of groups, transactions and records, which people may move ahead or hold.

    reactor ── seconds ──▶ SteeredClock ── seconds, callLater ──▶ coordinators, cleaning, timestamps

Until the clock is steered, `seconds` is the reactor's own function. Moving the clock ahead is one jump. Calls
that came due within the jump are made after it, in the order of their times, and they see the time after the
jump. So a session or a rebalance that such a call begins has its whole time-out before it. If the call saw
the time at which it was due, the session could be over before its client could send anything. Time never goes
back.
"""

from __future__ import annotations

from collections.abc import Callable

from kshim.storage.clock import Call, Clock


class SteeredCall:
    """A scheduled call that has not been made."""

    __slots__ = ("_arguments", "_clock", "_function", "_keywords", "_scheduled", "at_s")

    def __init__(
        self,
        clock: SteeredClock,
        at_s: float,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        keywords: dict[str, object],
    ) -> None:
        self.at_s = at_s
        """When the call is due, by the steered clock."""
        self._clock = clock
        self._function, self._arguments, self._keywords = function, arguments, keywords
        self._scheduled: Call | None = None
        """The reactor's call; None while time is held before the call is due."""

    def cancel(self) -> None:
        """Give the call up. It must not have been made or cancelled already."""
        self._clock.forget(self)
        self.put_off()

    def schedule(self, reactor: Clock, delay_s: float) -> None:
        """Make the call in `delay_s` of the reactor's time, in place of an earlier schedule."""
        self.put_off()
        self._scheduled = reactor.callLater(delay_s, self._make)

    def put_off(self) -> None:
        """Do not make the call until it is scheduled again."""
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
        """The seconds by which this clock is ahead of the reactor's; below zero after time was held."""
        return self.seconds() - self._reactor.seconds()

    @property
    def is_held(self) -> bool:
        return self._held_at_s is not None

    @property
    def is_behind(self) -> bool:
        """True if a call is due and has not been made."""
        return any(call.at_s <= self.seconds() for call in self._calls)

    # ---- calls

    def callLater(
        self, delay: float, callable: Callable[..., object], *arguments: object, **keywords: object
    ) -> SteeredCall:
        """Like the reactor's `callLater`, with a delay in this clock's seconds."""
        call = SteeredCall(self, self.seconds() + delay, callable, arguments, keywords)
        self._calls[call] = None
        if self._held_at_s is None or delay <= 0:
            call.schedule(self._reactor, delay)
        return call

    def forget(self, call: SteeredCall) -> None:
        """Forget a call that is made or cancelled."""
        del self._calls[call]

    # ---- steering

    def advance(self, seconds: float) -> None:
        """Move ahead at once. The calls that are due then are made in the reactor's next turn."""
        assert seconds >= 0
        if self._held_at_s is not None:
            self._held_at_s += seconds
        else:
            self._ahead_s += seconds
            self.seconds = self._moved
        self._schedule_anew()

    def hold(self) -> None:
        """Stop time. Only calls that are already due are still made."""
        if self._held_at_s is None:
            self._held_at_s = self.seconds()
            self.seconds = self._held
            self._schedule_anew()

    def resume(self) -> None:
        """Make time go on from where it was held."""
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
        """Schedule all calls for the changed time, in the order in which they are due.

        The reactor makes calls that are due at once in the order in which they were scheduled.
        """
        for call in sorted(self._calls, key=lambda each: each.at_s):
            left_s = max(call.at_s - self.seconds(), 0)
            if self._held_at_s is None or left_s == 0:
                call.schedule(self._reactor, left_s)
            else:
                call.put_off()
