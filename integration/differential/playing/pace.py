"""Whether a play keeps pace with the time-outs of its history; and the same history with more time in it.

In a history nothing takes time but its pauses. On a busy machine everything does, and a member may be evicted
before the pause in which it should still have been there. Such a play proves nothing. It is known by its
steps: between any two of them have the same time-outs run out as if only the pauses had taken time, or the
play is too late.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect
from collections.abc import Iterable, Sequence

from integration.differential.words.history import Ask, Pause, Step
from schemas.messages.join_group import JoinGroupRequest

SHORT_MS = range(301, 10_000)
"""Time-outs that a history lives to see; 300 is the least that the servers take, longer ones never end."""
IN_A_ROW = 3
"""What ends may start what ends later: a session, the join phase that its end begins, the wait for a sync."""
MARGIN_MS = 30
"""A server has its own clock, and the answer that began a time-out came some time ago."""


class TooLate(Exception):
    """A play took longer than the time-outs of its history allow."""


def short_time_outs_ms(steps: Iterable[Step]) -> set[int]:
    """Those that the members of a history ask for."""
    return {ms for step in steps for ms in _short_time_outs(step).values()}


def stretched(steps: Sequence[Step], times: int) -> list[Step]:
    """The same history, with pauses and short time-outs so many times as long."""
    return [_stretched(step, times) for step in steps]


def _stretched(step: Step, times: int) -> Step:
    if isinstance(step, Pause):
        return dataclasses.replace(step, ms=step.ms * times)
    longer = {name: ms * times for name, ms in _short_time_outs(step).items()}
    if isinstance(step, Ask) and longer:
        return dataclasses.replace(step, request=dataclasses.replace(step.request, **longer))
    return step


def _short_time_outs(step: Step) -> dict[str, int]:
    """By the name of the field."""
    if not isinstance(step, Ask) or not isinstance(step.request, JoinGroupRequest):
        return {}
    named = {name: getattr(step.request, name) for name in ("session_timeout_ms", "rebalance_timeout_ms")}
    return {name: ms for name, ms in named.items() if ms in SHORT_MS}


class Pace:
    """One play's. Is told what happens, and when, in seconds.

    delay_ms: of the server, before the first rebalance of a group; 0: none.
    """

    def __init__(self, time_outs_ms: Iterable[int], delay_ms: int) -> None:
        ends_ms = {each * count for each in time_outs_ms for count in range(1, IN_A_ROW + 1)}
        self._ends_ms = sorted(ends_ms | ({delay_ms} - {0}))
        self._paused_ms = 0
        self._begun: list[tuple[float, int]] = []
        """For each step when it began, and how much of the pauses was over."""

    def begin(self, now_s: float) -> None:
        """A step begins."""
        self._begun.append((now_s, self._paused_ms))

    def pause(self, ms: int) -> None:
        """A pause is over."""
        self._paused_ms += ms

    def forget(self) -> None:
        """The history has waited for its servers, as long as they took: nothing before it counts."""
        self._begun.clear()

    def check(self, now_s: float) -> None:
        """Raises TooLate."""
        for began_s, paused_ms in self._begun:
            meant_ms, took_ms = self._paused_ms - paused_ms, (now_s - began_s) * 1000 + MARGIN_MS
            if bisect(self._ends_ms, meant_ms) != bisect(self._ends_ms, took_ms):
                raise TooLate(f"{took_ms:.0f} ms for what should take {meant_ms}")
