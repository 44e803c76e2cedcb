"""A clock that is moved ahead, held and resumed, over a reactor's clock that goes on as it likes."""

from __future__ import annotations

from functools import partial

import pytest
from twisted.internet.task import Clock

from kshim.control.clock import SteeredClock

START_S = 1_700_000_000


class Calls:
    """Notes calls, and the time at each of them."""

    def __init__(self) -> None:
        self.reactor = Clock()
        self.reactor.advance(START_S)
        self.clock = SteeredClock(self.reactor)
        self.made: list[tuple[str, float]] = []

    def later(self, delay_s: float, name: str) -> object:
        return self.clock.callLater(delay_s, partial(self.note, name))

    def note(self, name: str) -> None:
        self.made.append((name, self.clock.seconds() - START_S))


@pytest.fixture
def calls() -> Calls:
    return Calls()


def test_until_it_is_steered_it_is_the_reactors(calls: Calls) -> None:
    assert calls.clock.seconds == calls.reactor.seconds
    calls.later(5, "later")
    calls.reactor.advance(4)
    assert calls.made == []
    calls.reactor.advance(1)
    assert calls.made == [("later", 5)]
    assert calls.clock.ahead_s == 0


def test_what_came_due_is_called_in_its_order_and_told_the_end(calls: Calls) -> None:
    for delay_s, name in ((300, "third"), (10, "first"), (301, "not yet"), (20, "second")):
        calls.later(delay_s, name)
    calls.clock.advance(300)
    assert calls.made == []
    assert calls.clock.is_behind
    calls.reactor.advance(0)
    assert calls.made == [("first", 300), ("second", 300), ("third", 300)]
    assert not calls.clock.is_behind
    assert calls.clock.ahead_s == 300
    calls.reactor.advance(1)
    assert calls.made[3:] == [("not yet", 301)]


def test_what_such_a_call_begins_has_its_whole_time(calls: Calls) -> None:
    calls.clock.callLater(10, lambda: calls.later(45, "session"))
    calls.clock.advance(300)
    calls.reactor.advance(0)
    calls.reactor.advance(44)
    assert calls.made == []
    calls.reactor.advance(1)
    assert calls.made == [("session", 345)]


def test_held_time_stands_still_and_goes_on_from_there(calls: Calls) -> None:
    calls.later(10, "session")
    calls.reactor.advance(4)
    calls.clock.hold()
    calls.clock.hold()
    calls.reactor.advance(1000)
    assert calls.made == []
    assert calls.clock.seconds() == START_S + 4
    calls.clock.resume()
    calls.clock.resume()
    calls.reactor.advance(5)
    assert calls.made == []
    calls.reactor.advance(1)
    assert calls.made == [("session", 10)]
    assert calls.clock.ahead_s == -1000


def test_held_time_can_be_advanced(calls: Calls) -> None:
    calls.clock.hold()
    calls.later(10, "first")
    calls.later(20, "second")
    calls.clock.advance(15)
    calls.reactor.advance(100)
    assert calls.made == [("first", 15)]
    calls.clock.advance(5)
    calls.reactor.advance(0)
    assert calls.made == [("first", 15), ("second", 20)]


def test_what_is_to_come_at_once_comes_while_time_is_held(calls: Calls) -> None:
    calls.clock.hold()
    calls.later(0, "now")
    calls.reactor.advance(0)
    assert calls.made == [("now", 0)]


@pytest.mark.parametrize("held", [False, True])
def test_what_is_cancelled_never_comes(calls: Calls, held: bool) -> None:
    if held:
        calls.clock.hold()
    call = calls.clock.callLater(10, calls.note, "never")
    call.cancel()
    calls.clock.advance(20)
    calls.clock.resume()
    calls.reactor.advance(20)
    assert calls.made == []
    assert calls.reactor.getDelayedCalls() == []
