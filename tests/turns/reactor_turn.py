"""One turn of a reactor whose clock is a test's."""

from __future__ import annotations

from twisted.internet.task import Clock


def one_turn(clock: Clock) -> None:
    """Call what is due now. What that puts off waits for the next turn, as it does with a real reactor."""
    due = [call for call in clock.calls if call.getTime() <= clock.seconds()]
    for call in due:
        clock.calls.remove(call)
        call.called = 1
        call.func(*call.args, **call.kw)
