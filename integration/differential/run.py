"""Many histories at once: each has a group of its own, and most of its time it waits."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from integration.differential.compare import Difference, differences, transcript_text
from integration.differential.history import Answered, History
from integration.differential.pairs import Pair
from integration.differential.player import Asked, Target, play

AT_ONCE = 48
"""Histories under way at the same time: more, and a step is late for the clock of its group."""

AT_ONCE_AGAIN = 4
"""The same for those that are played again."""


@dataclass(frozen=True, eq=False)
class Run:
    """One history at one era."""

    history: History
    era: int

    def __str__(self) -> str:
        cases = "+".join(map(str, self.history.cases))
        return f"{cases}-{re.sub(r'[^a-z0-9]+', '-', self.history.title.lower())}-v{self.era}"


@dataclass(frozen=True)
class Outcome:
    """What came of a run. responses: how many were compared; transcript: what Apache Kafka answered."""

    differences: list[Difference]
    stale: list[str]
    responses: int
    transcript: str

    @property
    def is_as_expected(self) -> bool:
        return not self.untolerated and not self.stale

    @property
    def untolerated(self) -> list[Difference]:
        return [difference for difference in self.differences if not difference.tolerated]


def runs(histories: Iterable[History]) -> list[Run]:
    return [Run(history, era) for history in histories for era in history.eras_that_differ()]


async def play_all(wanted: Iterable[Run], pairs: Mapping[str, Pair]) -> tuple[dict[Run, Outcome], int]:
    """Play every run against both servers of its pair. Returns the outcomes, and how many were played twice.

    Where the servers differ, the history is played a second time when little else is under way, and that
    counts: a machine that was busy elsewhere for half a second changes which of two requests comes first.
    """
    numbers = itertools.count(1)

    async def play_some(some: Iterable[Run], at_once: int) -> dict[Run, Outcome]:
        places = asyncio.Semaphore(at_once)

        async def one(run: Run) -> tuple[Run, Outcome]:
            async with places:
                group = f"group{next(numbers):05}"
                return run, await _play(run, group, pairs[run.history.pair].targets)

        return dict(await asyncio.gather(*map(one, some)))

    outcomes = await play_some(wanted, AT_ONCE)
    again = [run for run, outcome in outcomes.items() if not outcome.is_as_expected]
    return outcomes | await play_some(again, AT_ONCE_AGAIN), len(again)


async def _play(run: Run, group: str, targets: tuple[Target, Target]) -> Outcome:
    steps = run.history.at(run.era)
    apache_kafka, kshim = await asyncio.gather(*(play(steps, run.era, group, target) for target in targets))
    found = differences(steps, apache_kafka, kshim)
    differing = {difference.number for difference in found}
    stale = [
        f"step {number} is meant to differ ({step.tolerated}), and does not"
        for number, step in enumerate(steps)
        if not isinstance(step, Answered) and step.tolerated and number not in differing
    ]
    responses = sum(isinstance(seen, Asked) and seen.is_answered.is_set() for seen in kshim.seen)
    return Outcome(found, stale, responses, transcript_text(steps, apache_kafka))
