"""The counts of users of quotas are bounded, and forgotten."""

from __future__ import annotations

from kshim.quotas.rate import Rate, Window
from kshim.quotas.used import MOST, Used


def new_used() -> Used[Rate]:
    return Used(lambda: Rate(Window(11, 1000)))


def test_each_has_its_own() -> None:
    used = new_used()
    used.of("a", 0).record(50_000, 0)
    assert used.of("a", 0).throttle_ms(1000, 0) == 40_000
    assert used.of("b", 0).throttle_ms(1000, 0) == 0


def test_who_is_idle_is_forgotten_when_another_comes() -> None:
    used = new_used()
    for number in range(100):
        used.of(number, 0).record(1, 0)
    assert len(used) == 100
    used.of("next", 11_000)
    assert len(used) == 1


def test_no_more_are_known_than_the_bound() -> None:
    used = new_used()
    for number in range(MOST + 10):
        used.of(number, 0).record(50_000, 0)
        used.of("always", 0).record(50_000, 0)
    assert len(used) == MOST
    assert used.of("always", 0).throttle_ms(1000, 0)
    assert not used.of(0, 0).throttle_ms(1000, 0)
