"""A line is logged once, and again when it was silent for long."""

import logging
import tracemalloc

from twisted.internet.task import Clock

from kshim.callers.once import MOST_CAUSES, MOST_NAMES, SILENT_S, Once


def test_a_cause_is_told_once_and_again_after_a_silence() -> None:
    clock = Clock()
    once = Once(clock)
    assert once.level("a") == logging.WARNING
    clock.advance(SILENT_S - 1)
    assert once.level("a") == logging.DEBUG
    assert once.level("b") == logging.WARNING
    clock.advance(1)
    assert once.level("a") == logging.WARNING
    assert once.level("a") == logging.DEBUG


def test_only_so_many_causes_are_remembered() -> None:
    clock = Clock()
    once = Once(clock)
    for cause in range(MOST_CAUSES + 1):
        assert once.level(cause) == logging.WARNING
    assert once.level(1) == logging.DEBUG
    assert once.level(0) == logging.WARNING


def test_what_was_told_again_is_forgotten_last() -> None:
    clock = Clock()
    once = Once(clock)
    once.level("a")
    once.level("b")
    clock.advance(SILENT_S)
    once.level("a")
    for cause in range(MOST_CAUSES - 1):
        once.level(cause)
    assert once.level("a") == logging.DEBUG


def test_each_name_of_a_cause_is_logged_once_up_to_a_limit() -> None:
    clock = Clock()
    once = Once(clock)
    for name in range(MOST_NAMES):
        assert once.level("a", name) == logging.WARNING
        assert once.level("a", name) == logging.DEBUG
    assert once.level("a", MOST_NAMES) == logging.DEBUG
    assert once.level("b", 0) == logging.WARNING
    clock.advance(SILENT_S)
    assert once.level("a", MOST_NAMES) == logging.WARNING


def test_long_names_are_not_kept() -> None:
    clock = Clock()
    once = Once(clock)
    tracemalloc.start()
    for number in range(200):
        once.level(f"cause {number}", f"{number}" + "x" * 32_000)
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes < 200_000
