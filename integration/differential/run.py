"""Many histories at once: each has a group of its own, and most of its time it waits.

kshim plays a history once, and what it answers is held against what Apache Kafka answers. Where they differ,
Apache Kafka is asked again, several times: it leaves some things to chance (which member leads when the
leader has left), and all its answers are right. kshim must have given one of them. Only a play of kshim
during which it was measured to stand still for long (`stalls`) is void, and made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from integration.differential.compare import Difference, differences, transcript_text
from integration.differential.history import History, Step, tolerated
from integration.differential.meant import by_rule
from integration.differential.pairs import Pair
from integration.differential.player import Asked, Target, Transcript, play
from integration.differential.stalls import Watch, watched
from schemas.error_code import ErrorCode

AT_ONCE = 48
"""Histories under way at the same time: more, and a step is late for the clock of its group."""
KAFKA_PLAYS = 16
"""How often Apache Kafka is asked until it answers as kshim did."""
STALL_S = 0.15
"""Standing still for longer makes a play void: the steps of some histories are 200 ms from a time-out."""
VOID_PLAYS = 10
"""After so many the machine is found too busy."""


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
    """What came of a run. answers: kshim's, by API and error; transcript: what Apache Kafka answered;
    kafka_plays: how often it was asked; void: how many plays of kshim a standstill made void."""

    differences: list[Difference]
    stale: list[str]
    answers: Counter[str]
    transcript: str
    kafka_plays: int
    void: int

    @property
    def responses(self) -> int:
        return self.answers.total()

    @property
    def is_as_expected(self) -> bool:
        return not self.untolerated and not self.stale

    @property
    def untolerated(self) -> list[Difference]:
        return _untolerated(self.differences)


def _untolerated(found: Iterable[Difference]) -> list[Difference]:
    return [difference for difference in found if not difference.tolerated]


def _earliest(found: Iterable[Difference]) -> tuple[bool, int]:
    """The smaller, the later two servers part: less than every other where they do not."""
    return max(((True, -difference.number) for difference in _untolerated(found)), default=(False, 0))


def _stale(steps: Sequence[Step], found: Iterable[Difference]) -> list[str]:
    differing = {difference.number for difference in found}
    return [
        f"step {number} is meant to differ ({tolerated(step)}), and does not"
        for number, step in enumerate(steps)
        if tolerated(step) and number not in differing
    ]


def _answers(transcript: Transcript) -> Iterator[str]:
    for seen in transcript.seen:
        if isinstance(seen, Asked) and seen.is_answered.is_set():
            text = str(seen.answer)
            code = min(
                map(int, re.findall(r"error_code=(-?\d+)", text)), default=0, key=lambda code: code == 0
            )
            yield f"{seen.step.api_key.name} {ErrorCode(code).name if '(' in text else text}"


def runs(histories: Iterable[History]) -> list[Run]:
    return [Run(history, era) for history in histories for era in history.eras_that_differ()]


async def play_all(
    wanted: Iterable[Run], pairs: Mapping[str, Pair], at_once: int = AT_ONCE
) -> dict[Run, Outcome]:
    """Play every run against both servers of its pair."""
    places = asyncio.Semaphore(at_once)
    async with contextlib.AsyncExitStack() as stack:
        stages = {
            name: Stage(pair.targets, await stack.enter_async_context(watched(pair.targets)))
            for name, pair in pairs.items()
        }

        async def one(run: Run) -> tuple[Run, Outcome]:
            async with places:
                return run, await stages[run.history.pair].perform(run)

        return dict(await asyncio.gather(*map(one, wanted)))


class Stage:
    """Two servers, and the watches that are kept on them."""

    _numbers = itertools.count(1)

    def __init__(self, targets: tuple[Target, Target], watches: Sequence[Watch]) -> None:
        self.apache_kafka, self.kshim = targets
        self.kshim_watch = watches[1]

    async def perform(self, run: Run, kafka_plays: int = KAFKA_PLAYS) -> Outcome:
        """Play until kshim has answered as Apache Kafka did, or there is no more excuse."""
        steps, era = run.history.at(run.era), run.era
        answers, kshim = await asyncio.gather(
            self._play(steps, era, self.apache_kafka), self._play(steps, era, self.kshim)
        )
        plays = [answers]

        def compared(answers: Transcript) -> list[Difference]:
            found = differences(steps, answers, kshim)
            return by_rule(found, steps, answers, kshim) if run.history.meant_by_rule else found

        found = compared(answers)
        void = 0
        while _untolerated(found):
            stalled_s = self.kshim_watch.longest_s(kshim.began_s, kshim.ended_s)
            if stalled_s > STALL_S and void < VOID_PLAYS:
                void += 1
                kshim = await self._play(steps, era, self.kshim)
            elif len(plays) < kafka_plays:
                more = range(len(plays), kafka_plays)
                plays += await asyncio.gather(*(self._play(steps, era, self.apache_kafka) for _ in more))
            else:
                break
            found, answers = min(((compared(each), each) for each in plays), key=lambda of: _earliest(of[0]))
        return Outcome(
            differences=found,
            stale=_stale(steps, found),
            answers=Counter(_answers(kshim)),
            transcript=transcript_text(steps, answers),
            kafka_plays=len(plays),
            void=void,
        )

    async def _play(self, steps: Sequence[Step], era: int, target: Target) -> Transcript:
        return await play(steps, era, f"group{next(self._numbers):06}", target)


def summary(outcomes: Iterable[Outcome]) -> str:
    all_ = list(outcomes)
    again = [outcome.kafka_plays - 1 for outcome in all_ if outcome.kafka_plays > 1]
    return (
        f"{len(all_)} histories, {sum(outcome.responses for outcome in all_)} responses of each server "
        f"compared; {sum(outcome.void for outcome in all_)} plays void because the server stood still; "
        f"Apache Kafka was asked {sum(again)} times again for {len(again)} histories"
    )
