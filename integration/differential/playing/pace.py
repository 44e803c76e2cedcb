"""Tells whether a play keeps pace with its history's time-outs, and stretches the history where it does not.

In a history only its pauses take time. On a busy machine everything does, and a member may be evicted before
the pause in which it should still have been there. Such a play proves nothing. It is recognised by its steps:
between any two of them the same time-outs must have run out as if only the pauses had taken time.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect
from collections.abc import Iterable, Sequence

from integration.differential.words.history import Ask, Pause, Step
from schemas.messages.join_group import JoinGroupRequest

SHORT_MS = range(301, 10_000)
"""Time-outs that may run out within a history: servers take no less than 300 ms, and longer ones never run
out."""
IN_A_ROW = 3
"""One time-out may start another: a session ends, which begins a join phase, whose end begins the wait for a
sync."""
MARGIN_MS = 30
"""A server has its own clock, and sent the answer that started a time-out a little earlier."""


class TooLate(Exception):
    """A play took longer than the time-outs of its history allow."""


def short_time_outs_ms(steps: Iterable[Step]) -> set[int]:
    """The short time-outs that the members of a history ask for."""
    return {ms for step in steps for ms in _short_time_outs(step).values()}


def stretched(steps: Sequence[Step], times: int) -> list[Step]:
    """Return the history with pauses and short time-outs multiplied by `times`."""
    return [_stretched(step, times) for step in steps]


def _stretched(step: Step, times: int) -> Step:
    if isinstance(step, Pause):
        return dataclasses.replace(step, ms=step.ms * times)
    longer = {name: ms * times for name, ms in _short_time_outs(step).items()}
    if isinstance(step, Ask) and longer:
        return dataclasses.replace(step, request=dataclasses.replace(step.request, **longer))
    return step


def _short_time_outs(step: Step) -> dict[str, int]:
    """The short time-outs of a JoinGroup, by the name of their field."""
    if not isinstance(step, Ask) or not isinstance(step.request, JoinGroupRequest):
        return {}
    named = {name: getattr(step.request, name) for name in ("session_timeout_ms", "rebalance_timeout_ms")}
    return {name: ms for name, ms in named.items() if ms in SHORT_MS}


class Pace:
    """Judges the pace of one play, which reports when its steps begin and its pauses end.

    delay_ms: the server's delay before the first rebalance of a group; 0 for none.
    """

    def __init__(self, time_outs_ms: Iterable[int], delay_ms: int) -> None:
        ends_ms = {each * count for each in time_outs_ms for count in range(1, IN_A_ROW + 1)}
        self._ends_ms = sorted(ends_ms | ({delay_ms} - {0}))
        self._paused_ms = 0
        self._begun: list[tuple[float, int]] = []
        """For each step, when it began and the total of the pauses before it."""

    def begin(self, now_s: float) -> None:
        """A step begins."""
        self._begun.append((now_s, self._paused_ms))

    def pause(self, ms: int) -> None:
        """A pause is over."""
        self._paused_ms += ms

    def forget(self) -> None:
        """Drop all steps so far: the history has waited for its servers, for as long as they took."""
        self._begun.clear()

    def check(self, now_s: float) -> None:
        """Raises TooLate."""
        for began_s, paused_ms in self._begun:
            meant_ms, took_ms = self._paused_ms - paused_ms, (now_s - began_s) * 1000 + MARGIN_MS
            if bisect(self._ends_ms, meant_ms) != bisect(self._ends_ms, took_ms):
                raise TooLate(f"{took_ms:.0f} ms for what should take {meant_ms}")
