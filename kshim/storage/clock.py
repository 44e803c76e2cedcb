"""The clock that is passed to every part of the server that needs one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred


class Call(Protocol):
    """A scheduled call that can be given up."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The part of Twisted's IReactorTime that kshim uses: the reactor, a steered clock, or in tests
    `twisted.internet.task.Clock`.
    """

    def seconds(self) -> float: ...
    def callLater(
        self, delay: float, callable: Callable[..., object], *args: object, **kwargs: object
    ) -> Call: ...


class Timer(Call, Protocol):
    """The part of Twisted's IDelayedCall that kshim uses: a scheduled call that can also be moved."""

    def reset(self, secondsFromNow: float) -> None: ...  # noqa: N803, Twisted's name
    def active(self) -> bool: ...
    def getTime(self) -> float: ...


class TimerClock(Clock, Protocol):
    """A clock whose calls can be moved: the reactor, but no steered clock."""

    def callLater(
        self, delay: float, callable: Callable[..., object], *args: object, **kwargs: object
    ) -> Timer: ...


def after(clock: Clock, delay_s: float) -> Deferred[None]:
    """Fires after a delay. Nothing stays scheduled if it is cancelled."""
    over: Deferred[None] = Deferred(lambda _: call.cancel())
    call = clock.callLater(delay_s, over.callback, None)
    return over
