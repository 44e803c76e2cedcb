"""Handshakes take turns with all else, and their clients with each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshim.network.handshakes import SLICE_S, Handshakes

STEP_S = 0.75 * SLICE_S


class Turns:
    """A clock that does in one turn what was planned before it, as a reactor does."""

    def __init__(self) -> None:
        self.planned: list[Callable[[], None]] = []

    def callLater(self, delay_s: float, do: Callable[[], None]) -> None:
        assert delay_s == 0
        self.planned.append(do)

    def turn(self) -> None:
        planned, self.planned = self.planned, []
        for do in planned:
            do()


class World:
    """Steps of which two take a slice."""

    def __init__(self) -> None:
        self.clock: Any = Turns()
        self.now_s = 0.0
        self.done: list[str] = []
        self.handshakes = Handshakes(self.clock, lambda: self.now_s)

    def step(self, name: str) -> Callable[[], None]:
        def do() -> None:
            self.now_s += STEP_S
            self.done.append(name)

        return do

    def add(self, *names: str) -> None:
        """Steps NAME of the address of their first letter."""
        for name in names:
            self.handshakes.add(name[0], self.step(name))


def test_a_step_is_done_at_once_while_there_is_time() -> None:
    world = World()
    world.add("a1", "a2")
    assert world.done == ["a1", "a2"]


def test_others_have_their_turn_after_some_milliseconds() -> None:
    world = World()
    world.add("a1", "a2", "a3", "a4", "a5")
    assert world.done == ["a1", "a2"]
    world.clock.turn()
    assert world.done == ["a1", "a2", "a3", "a4"]
    world.clock.turn()
    assert world.done == ["a1", "a2", "a3", "a4", "a5"]


def test_who_asks_for_many_waits_behind_who_asks_for_one() -> None:
    world = World()
    world.add("a1", "a2", "a3", "a4", "a5", "a6", "b1")
    world.clock.turn()
    assert world.done == ["a1", "a2", "a3", "b1"]
    world.clock.turn()
    assert world.done[4:] == ["a4", "a5"]


def test_nothing_is_left_when_all_is_done() -> None:
    world = World()
    world.add("a1", "a2", "a3")
    for _ in range(3):
        world.clock.turn()
    assert world.clock.planned == []
    world.add("a4")
    assert world.done[-1] == "a4"
