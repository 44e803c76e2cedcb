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
from dataclasses import dataclass, field

from integration.differential.playing.compare import Difference, differences, transcript_text
from integration.differential.playing.meant import by_rule
from integration.differential.playing.pace import TooLate
from integration.differential.playing.pairs import Pair
from integration.differential.playing.player import Asked, Target, Transcript, play
from integration.differential.playing.settling import Settling
from integration.differential.playing.stalls import Watch, watched
from integration.differential.words.history import History, Pause, Step, tolerated
from schemas.error_code import ErrorCode

AT_ONCE = 48
"""Histories under way at the same time: more, and a step is late for the clock of its group."""
AT_ONCE_AGAIN = 3
"""Of those that are played again, when all have been played: Apache Kafka verifies the transactions of many
producers in one go, and answers some of them with another's error."""
KAFKA_PLAYS = 16
"""How often Apache Kafka is asked until it answers as kshim did."""
STALL_S = 0.15
"""Standing still for longer makes a play void: the steps of some histories are 200 ms from a time-out."""
VOID_PLAYS = 10
"""After so many the machine is found too busy."""
STRETCHES = (1, 2, 4, 8)
"""A history for which the machine was too slow is played again with all its times so many times as long; but
the delay of a server that has one stays as it is."""


@dataclass(frozen=True, eq=False)
class Run:
    """One history at one era."""

    history: History
    era: int

    def __str__(self) -> str:
        cases = "+".join(map(str, self.history.cases))
        return f"{cases}-{re.sub(r'[^a-z0-9]+', '-', self.history.title.lower())}-v{self.era}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a run. answers: kshim's, by API and error; transcript: what Apache Kafka answered;
    kafka_plays: how often it was asked; void: how many plays of kshim a standstill made void;
    is_late: no play was quick enough for the time-outs, and so nothing is compared."""

    differences: Sequence[Difference] = ()
    stale: Sequence[str] = ()
    answers: Counter[str] = field(default_factory=Counter)
    transcript: str = ""
    kafka_plays: int
    void: int
    is_late: bool = False

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
    places, fewer_places = asyncio.Semaphore(at_once), asyncio.Semaphore(AT_ONCE_AGAIN)
    async with contextlib.AsyncExitStack() as stack:
        stages = {
            name: Stage(pair.targets, await stack.enter_async_context(watched(pair.targets)))
            for name, pair in pairs.items()
        }

        runs = list(wanted)

        async def first(run: Run) -> Plays:
            async with places:
                return await stages[run.history.pair].play_once(run)

        async def judged(run: Run, plays: Plays) -> Outcome:
            async with fewer_places:
                return await stages[run.history.pair].judge(run, plays)

        played = await asyncio.gather(*map(first, runs))
        outcomes = await asyncio.gather(*map(judged, runs, played))
        return dict(zip(runs, outcomes, strict=True))


@dataclass
class Plays:
    """What the servers answered in one run, as far as they were asked in time: Apache Kafka each time."""

    apache_kafka: list[Transcript]
    kshim: Transcript | None


class Stage:
    """Two servers, and the watches that are kept on them."""

    _numbers = itertools.count(1)

    def __init__(self, targets: tuple[Target, Target], watches: Sequence[Watch]) -> None:
        self.apache_kafka, self.kshim = targets
        self.kshim_watch = watches[1]
        self.settling = {target.port: Settling(target) for target in targets}

    async def play_once(self, run: Run) -> Plays:
        apache_kafka, kshim = await asyncio.gather(
            self._play(run, self.apache_kafka), self._play(run, self.kshim)
        )
        return Plays(_in_time([apache_kafka]), kshim)

    async def judge(self, run: Run, plays: Plays, kafka_plays: int = KAFKA_PLAYS) -> Outcome:
        """Play again until kshim has answered as Apache Kafka did, or there is no more excuse."""
        steps = run.history.at(run.era)
        void, asked = 0, 1
        while plays.kshim is not None and plays.apache_kafka:
            found, answers = _closest(run, steps, plays.apache_kafka, plays.kshim)
            stalled_s = self.kshim_watch.longest_s(plays.kshim.began_s, plays.kshim.ended_s)
            is_differing, stale = bool(_untolerated(found)), _stale(steps, found)
            is_void = _has_pauses(steps) and stalled_s > STALL_S
            if (is_differing or stale) and is_void and void < VOID_PLAYS:
                void += 1
                plays.kshim = await self._play(run, self.kshim)
            elif is_differing and asked < kafka_plays:
                more = min(asked, kafka_plays - asked)
                asked += more
                plays.apache_kafka += _in_time(
                    await asyncio.gather(*(self._play(run, self.apache_kafka) for _ in range(more)))
                )
            else:
                return Outcome(
                    differences=found,
                    stale=stale,
                    answers=Counter(_answers(plays.kshim)),
                    transcript=transcript_text(steps, answers),
                    kafka_plays=asked,
                    void=void,
                )
        return Outcome(kafka_plays=asked, void=void, is_late=True)

    async def perform(self, run: Run, kafka_plays: int = KAFKA_PLAYS) -> Outcome:
        return await self.judge(run, await self.play_once(run), kafka_plays)

    async def _play(self, run: Run, target: Target) -> Transcript | None:
        """None if it was never in time."""
        steps = run.history.at(run.era)
        for times in [1] * VOID_PLAYS if target.delay_ms else STRETCHES:
            with contextlib.suppress(TooLate):
                group = f"group{next(self._numbers):06}"
                return await play(steps, run.era, group, target, times, self.settling[target.port])
        return None


def _has_pauses(steps: Iterable[Step]) -> bool:
    """Else it does not matter how long the servers take."""
    return any(isinstance(step, Pause) for step in steps)


def _in_time(plays: Iterable[Transcript | None]) -> list[Transcript]:
    return [transcript for transcript in plays if transcript is not None]


def _closest(
    run: Run, steps: Sequence[Step], plays: Iterable[Transcript], kshim: Transcript
) -> tuple[list[Difference], Transcript]:
    """The differences to the play of Apache Kafka that is most like that of kshim, and that play."""

    def compared(apache_kafka: Transcript) -> list[Difference]:
        found = differences(steps, apache_kafka, kshim)
        return by_rule(found, steps, apache_kafka, kshim) if run.history.meant_by_rule else found

    each = ((compared(apache_kafka), apache_kafka) for apache_kafka in plays)
    return min(each, key=lambda of: _earliest(of[0]))


def summary(outcomes: Iterable[Outcome]) -> str:
    all_ = list(outcomes)
    again = [outcome.kafka_plays - 1 for outcome in all_ if outcome.kafka_plays > 1]
    return (
        f"{len(all_)} histories, {sum(outcome.responses for outcome in all_)} responses of each server "
        f"compared; {sum(outcome.void for outcome in all_)} plays void because the server stood still; "
        f"Apache Kafka was asked {sum(again)} times again for {len(again)} histories; "
        f"{sum(outcome.is_late for outcome in all_)} could not be played in time"
    )
