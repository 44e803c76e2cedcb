"""Waits for a condition, with a deadline. Tests wait in no other way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02


def wait_until(condition: Callable[[], T], timeout_s: float, what: str | Callable[[], str]) -> T:
    """Return the first true value of `condition()`. Raises AssertionError with `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(POLL_S)
    return value
