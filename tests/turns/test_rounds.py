"""Rounds: everybody in the line has a turn, nobody has two before the others, and a round ends in time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from twisted.internet.task import Clock

from kshim.turns.promise import Promise, run
from kshim.turns.rounds import CROWD, CROWDED_SHARE_S, ROUND_S, SHARE_S, Rounds
from tests.turns.reactor_turn import one_turn


class Line:
    """Rounds whose turns take some of the clock's time, and who had a turn."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.rounds = Rounds(self.clock)
        self.seen: list[str] = []

    def stand(self, name: str, takes_s: float = 0, *, turns: int = 1, is_fresh: bool = False) -> None:
        """Stand in line for some turns, one after the other."""

        def take_turn() -> None:
            self.seen.append(name)
            self.clock.rightNow += takes_s
            if turns > 1:
                self.stand(name, takes_s, turns=turns - 1, is_fresh=is_fresh)

        self.rounds.stand_in_line(take_turn, is_fresh=is_fresh)

    def round(self) -> list[str]:
        """Those who had a turn in the next round."""
        self.seen.clear()
        one_turn(self.clock)
        return list(self.seen)


@pytest.fixture
def line() -> Line:
    return Line()


def test_each_has_one_turn_a_round(line: Line) -> None:
    line.stand("a", turns=2)
    line.stand("b")
    assert line.round() == ["a", "b"]
    assert line.round() == ["a"]
    assert line.round() == []


def test_a_round_ends_in_time_and_the_rest_comes_first_in_the_next(line: Line) -> None:
    for name in "abc":
        line.stand(name, ROUND_S / 2, turns=2)
    assert line.round() == ["a", "b"]
    assert line.round() == ["c", "a"]
    assert line.round() == ["b", "c"]


def test_a_fresh_turn_comes_first_but_each_round_has_a_busy_one(line: Line) -> None:
    line.stand("busy", 2 * ROUND_S, turns=2)
    for _ in range(2):
        line.stand("fresh", 2 * ROUND_S, turns=2, is_fresh=True)
    assert line.round() == ["fresh", "busy"]
    assert line.round() == ["fresh", "busy"]
    assert line.round() == ["fresh"]


def test_a_round_that_is_used_up_is_followed_by_another(line: Line) -> None:
    line.rounds.used_s = ROUND_S
    line.rounds.end()
    line.clock.advance(0)
    assert line.rounds.used_s == 0
    assert not line.clock.getDelayedCalls()


def test_what_takes_a_round_is_followed_by_the_next_in_another_round(line: Line) -> None:
    def compute(number: int) -> int:
        line.clock.rightNow += 2 * ROUND_S
        return number

    assert run(line.rounds.run(lambda: compute(1))) == 1
    later = [run(line.rounds.run(lambda: compute(2))), run(line.rounds.run(lambda: compute(3)))]
    seen: list[object] = []
    for each in later:
        assert isinstance(each, Promise)
        each.listen(seen.append)
    line.round()
    assert seen == [2]
    line.round()
    assert seen == [2, 3]


def test_shares_are_small_while_a_crowd_stands_in_line(line: Line) -> None:
    for _ in range(CROWD):
        line.stand("fresh", 2 * ROUND_S, is_fresh=True)
    assert line.rounds.share_s == SHARE_S
    line.stand("fresh", 2 * ROUND_S, is_fresh=True)
    assert line.rounds.share_s == CROWDED_SHARE_S
    line.round()
    assert line.rounds.share_s == SHARE_S


def test_a_turn_is_awaited(line: Line) -> None:
    calls: list[None] = []
    append: Callable[[None], None] = calls.append
    line.rounds.next().addCallback(append)
    assert calls == []
    line.clock.advance(0)
    assert calls == [None]
