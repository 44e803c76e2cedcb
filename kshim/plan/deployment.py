"""What is done to the members of a group, and when: restarts, scaling, crashes. Pure values.

A slot is the place of one member, such as a pod of a set. Its process ends and a new one starts. With static
membership the new one has the same group.instance.id.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from enum import StrEnum
from random import Random
from typing import Final, NamedTuple

STARTS_WITHIN_MS = 2_000
"""Processes that are started at one time join within this time, each at another moment, in ms."""


class Kind(StrEnum):
    """What is done to a slot."""

    START = "start"
    CLOSE = "close"
    """Its program closes the consumer, and ends."""
    CRASH = "crash"
    """Its process is gone without a word."""


class Act(NamedTuple):
    """One thing that is done to one slot."""

    at_ms: int
    kind: Kind
    slot: int


class RollingRestart(NamedTuple):
    """One round: every member that runs at `at_ms` is restarted, one after the other."""

    at_ms: int
    every_ms: int
    down_ms: int
    """How long after its end a member joins again."""
    is_killed: bool = False
    """True if members crash in place of closing."""


class Scale(NamedTuple):
    """From `at_ms` on there are `to` members."""

    at_ms: int
    to: int
    before: int | None = None
    """How many there are before, if the user said it."""


class Crash(NamedTuple):
    """So many members crash; which, the seed decides."""

    at_ms: int
    members: int
    back_ms: int | None = None
    """How long after that they join again; None if they stay away."""


class _Restart(NamedTuple):
    at_ms: int
    slot: int
    down_ms: int
    is_killed: bool


Step = RollingRestart | Scale | Crash


class Deployment(NamedTuple):
    """All that is done, in order. At first the slots from 0 to members - 1 start."""

    members: int
    acts: tuple[Act, ...]


class NotPossible(ValueError):
    """Steps that cannot be done; str() says why."""


def deployed(members: int, steps: Iterable[Step], seed: int = 0) -> Deployment:
    """What the steps do to the slots. Raises NotPossible."""
    return _Slots(members, steps, Random(seed)).play()


class _Slots:
    def __init__(self, members: int, steps: Iterable[Step], chance: Random) -> None:
        self._members, self._chance = members, chance
        self._present = list(range(members))
        """The slots that have a member, or will have one again after its restart; the latest ones last."""
        self._slots = members
        self._acts: list[Act] = []
        self._order = 0
        self._queue: list[tuple[int, int, Step | _Restart]] = []
        for step in steps:
            self._push(step)

    def play(self) -> Deployment:
        while self._queue:
            _, _, step = heapq.heappop(self._queue)
            _PLAYS[type(step)](self, step)
        return Deployment(self._members, tuple(sorted(self._acts, key=lambda act: act.at_ms)))

    def restart_all(self, step: RollingRestart) -> None:
        for number, slot in enumerate(self._present):
            at_ms = step.at_ms + number * step.every_ms
            self._push(_Restart(at_ms, slot, step.down_ms, step.is_killed))

    def restart(self, step: _Restart) -> None:
        if step.slot in self._present:
            self._ends(step.at_ms, Kind.CRASH if step.is_killed else Kind.CLOSE, step.slot)
            self._acts.append(Act(step.at_ms + step.down_ms, Kind.START, step.slot))

    def scale(self, step: Scale) -> None:
        has = len(self._present)
        if step.before not in (None, has):
            raise NotPossible(
                f"{step.before}:{step.to} begins with {step.before} members, but there are {has}"
            )
        for _ in range(step.to - has):
            self._present.append(self._slots)
            delay_ms = self._chance.randint(0, STARTS_WITHIN_MS)
            self._acts.append(Act(step.at_ms + delay_ms, Kind.START, self._slots))
            self._slots += 1
        for slot in self._present[step.to :]:
            self._ends(step.at_ms, Kind.CLOSE, slot)
        del self._present[step.to :]

    def crash(self, step: Crash) -> None:
        if step.members > len(self._present):
            raise NotPossible(f"{step.members} members cannot crash where there are {len(self._present)}")
        for slot in self._chance.sample(self._present, step.members):
            self._ends(step.at_ms, Kind.CRASH, slot)
            if step.back_ms is None:
                self._present.remove(slot)
            else:
                self._acts.append(Act(step.at_ms + step.back_ms, Kind.START, slot))

    def _ends(self, at_ms: int, kind: Kind, slot: int) -> None:
        """End a slot's process. A start that lies ahead is left out: nothing is there to end."""
        ahead = [act for act in self._acts if act.slot == slot and act.at_ms > at_ms]
        if ahead:
            self._acts = [act for act in self._acts if act not in ahead]
        else:
            self._acts.append(Act(at_ms, kind, slot))

    def _push(self, step: Step | _Restart) -> None:
        self._order += 1
        heapq.heappush(self._queue, (step.at_ms, self._order, step))


_PLAYS: Final[dict[type, Callable[..., None]]] = {
    RollingRestart: _Slots.restart_all,
    _Restart: _Slots.restart,
    Scale: _Slots.scale,
    Crash: _Slots.crash,
}
