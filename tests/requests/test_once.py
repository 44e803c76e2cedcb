"""A line is logged once, and again when it was silent for long."""

import logging

from twisted.internet.task import Clock

from kshim.requests.once import MOST_CAUSES, SILENT_S, Once


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
