"""Giving freed memory back to the system."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from kshim.cli.freed_memory import BUSY_PAUSE_S, LONGEST_PAUSE_S, LOOK_S, FreedMemory, new_trim, own_bytes

MB = 1024 * 1024


class Process:
    """Has some memory in use, and some that was freed."""

    def __init__(self) -> None:
        self.used, self.freed = 100 * MB, 0
        self.trims = 0
        self.clock = Clock()
        FreedMemory(self.clock, self.trim, lambda: self.used + self.freed).begin()

    def trim(self) -> None:
        self.trims += 1
        self.freed = 0

    def run(self, seconds: float) -> int:
        """Pass time; return how often memory was trimmed."""
        before = self.trims
        self.clock.pump([LOOK_S] * int(seconds / LOOK_S))
        return self.trims - before


@pytest.fixture
def process() -> Process:
    return Process()


def test_a_process_that_does_not_grow_is_left_alone(process: Process) -> None:
    process.freed = 20 * MB
    assert process.run(3_600) == 0


def test_what_a_burst_leaves_is_given_back(process: Process) -> None:
    process.used += 300 * MB
    process.run(30)
    process.used, process.freed = 110 * MB, 290 * MB
    process.run(60)
    assert process.freed == 0
    assert process.run(3_600) == 0


def test_memory_in_use_is_looked_at_less_and_less(process: Process) -> None:
    process.used += 300 * MB
    assert 3 < process.run(120) < 8
    process.run(7_200)
    assert process.run(10 * LONGEST_PAUSE_S) == 10


def test_growth_makes_it_look_again(process: Process) -> None:
    process.used += 300 * MB
    process.run(7_200)
    process.freed += 100 * MB
    process.run(BUSY_PAUSE_S + LOOK_S)
    assert process.freed == 0


def test_a_process_that_grows_again_and_again_is_seldom_trimmed(process: Process) -> None:
    process.used += 300 * MB
    process.run(60)
    before = process.trims
    for _ in range(100):
        process.freed += 100 * MB
        process.run(LOOK_S)
    assert process.trims - before <= 100 * LOOK_S / BUSY_PAUSE_S


def test_the_memory_of_this_process() -> None:
    assert own_bytes() > MB
    trim = new_trim()
    assert trim is not None
    trim()
