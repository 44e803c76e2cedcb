"""An alarm does due work in short turns, and a failure does not stop it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.internet.task import Clock

from kshim.coordination.alarm import LONGEST_TURN_MS, PAUSE_MS, Alarm


class Work:
    """Steps that are due at once; each takes `takes_ms`, and those in `broken` fail."""

    def __init__(self, steps: int, takes_ms: int = 0, broken: frozenset[int] = frozenset()) -> None:
        self.clock = Clock()
        self.left = list(range(steps))
        self.turns: list[list[int]] = []
        self.takes_ms, self.broken = takes_ms, broken
        self.alarm = Alarm(self.clock, self.next_deadline_ms, self.due)
        self.alarm.set()

    def next_deadline_ms(self) -> int | None:
        return 0 if self.left else None

    def due(self, now_ms: int) -> Iterator[None]:
        self.turns.append([])
        while self.left:
            step = self.left.pop(0)
            if step in self.broken:
                raise KeyError(step)
            self.turns[-1].append(step)
            self.clock.rightNow += self.takes_ms / 1000
            yield


def test_requests_have_their_turn_between_two_turns_of_work() -> None:
    work = Work(5, takes_ms=LONGEST_TURN_MS // 2)
    work.clock.advance(0)
    assert work.turns == [[0, 1], [2, 3], [4]]


def test_after_a_fault_the_rest_is_done_and_not_at_once(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(4, broken=frozenset({1, 2}))
    work.clock.advance(0)
    assert work.turns == [[0]]
    work.clock.advance(PAUSE_MS / 1000 - 0.001)
    assert work.turns == [[0]]
    work.clock.advance(0.001)
    work.clock.advance(PAUSE_MS / 1000)
    assert work.turns == [[0], [], [3]]
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 2
    assert work.alarm.at_ms is None
