"""A play too slow for the time-outs of its history is recognised, and the history is stretched."""

from __future__ import annotations

import pytest

from integration.differential.playing.pace import Pace, TooLate, short_time_outs_ms, stretched
from integration.differential.words.groups import answered, heartbeat, join, pause
from integration.differential.words.history import flat

SLOW = 0.7


def test_a_time_out_that_ran_out_too_early() -> None:
    """The pause is to end 400 ms into a session of 1000 ms; on this machine it ends after 1100 ms."""
    pace = Pace([1000], 0)
    pace.begin(0)
    pace.begin(SLOW)
    pace.pause(400)
    with pytest.raises(TooLate, match="1130 ms for what should take 400"):
        pace.check(SLOW + 0.4)


def test_what_comes_later_than_all_time_outs_may_take_its_time() -> None:
    pace = Pace([1000], 0)
    pace.begin(0)
    pace.pause(3500)
    pace.check(8)


def test_what_a_server_took_to_answer_is_not_counted() -> None:
    pace = Pace([], 1000)
    pace.begin(0)
    pace.forget()
    pace.begin(1.1)
    pace.check(1.9)
    with pytest.raises(TooLate):
        pace.check(2.1)


def test_a_time_out_that_another_one_starts() -> None:
    """The end of a session begins a join phase with a time-out of its own."""
    pace = Pace([1000], 0)
    pace.begin(0)
    pace.pause(1200)
    pace.check(1.5)
    with pytest.raises(TooLate):
        pace.check(2.0)


def test_only_pauses_and_short_time_outs_are_stretched() -> None:
    steps = flat([join("alice", session_ms=1000), pause(400), answered("alice"), heartbeat("alice")])
    assert short_time_outs_ms(steps) == {1000}
    longer = flat([join("alice", session_ms=4000), pause(1600), answered("alice"), heartbeat("alice")])
    assert stretched(steps, 4) == longer
    refused = flat([join("alice", session_ms=299), join("alice", session_ms=1_800_001)])
    assert stretched(refused, 4) == refused
