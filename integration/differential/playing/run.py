"""Plays many histories at once: each has its own group, and spends most of its time waiting.

kshim plays a history once, and its answers are compared with Apache Kafka's. Where they differ, Apache Kafka
plays it again, several times: it leaves some things to chance (which member leads when the leader has left),
and all its answers are right. kshim must have given one of them. A play of kshim is void, and repeated, only
if kshim was seen to stand still for long during it (`stalls`). Where another release of Apache Kafka plays in
place of kshim, it plays again as well: the two releases agree if any answers of both are the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""How many histories are played at once: with more of them, steps come too late for the clocks of their
groups."""
AT_ONCE_AGAIN = 3
"""How many are replayed at once, after all were played: Apache Kafka verifies the transactions of many
producers together, and answers some of them with another's error."""
KAFKA_PLAYS = 16
"""How many times Apache Kafka plays a history until it answers as kshim did."""
STALL_S = 0.15
"""A longer standstill makes a play void: the steps of some histories are 200 ms from a time-out."""
VOID_PLAYS = 10
"""After so many void plays, the machine counts as too busy."""
STRETCHES = (1, 2, 4, 8)
"""A history for which the machine was too slow is replayed with all its times multiplied by these; a server's
initial delay cannot be stretched."""

Rule = Callable[[Sequence[Difference], Sequence[Step], Transcript, Transcript], list[Difference]]
"""Gives differences their keys, if they are meant, and drops those that prove nothing; for histories whose
steps do not name them."""


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
    """The result of a run."""

    differences: Sequence[Difference] = ()
    stale: Sequence[str] = ()
    answers: Counter[str] = field(default_factory=Counter)
    """How often kshim gave each answer, by API and error."""
    transcript: str = ""
    """Apache Kafka's answers."""
    kafka_plays: int
    """How often Apache Kafka was asked."""
    void: int
    """How many plays of kshim were void because of a standstill."""
    is_late: bool = False
    """No play was quick enough for the time-outs, so nothing is compared."""

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
    """Sorts smaller the later the two servers part, and smallest if they do not."""
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
    wanted: Iterable[Run],
    pairs: Mapping[str, Pair],
    at_once: int = AT_ONCE,
    rule: Rule = by_rule,
    kafka_plays: int = KAFKA_PLAYS,
    are_releases: bool = False,
) -> dict[Run, Outcome]:
    """Play every run against both servers of its pair. are_releases: both servers are Apache Kafka."""
    places, fewer_places = asyncio.Semaphore(at_once), asyncio.Semaphore(AT_ONCE_AGAIN)
    async with contextlib.AsyncExitStack() as stack:
        stages = {
            name: Stage(
                pair.targets, await stack.enter_async_context(watched(pair.targets)), rule, are_releases
            )
            for name, pair in pairs.items()
        }

        runs = list(wanted)

        async def first(run: Run) -> Plays:
            async with places:
                return await stages[run.history.pair].play_once(run)

        async def judged(run: Run, plays: Plays) -> Outcome:
            async with fewer_places:
                return await stages[run.history.pair].judge(run, plays, kafka_plays)

        played = await asyncio.gather(*map(first, runs))
        outcomes = await asyncio.gather(*map(judged, runs, played))
        return dict(zip(runs, outcomes, strict=True))


@dataclass
class Plays:
    """The transcripts of one run that were in time. Apache Kafka has one for each play; so has a release in
    place of kshim."""

    apache_kafka: list[Transcript]
    kshim: list[Transcript]


class Stage:
    """Two servers, and the watches over them."""

    _numbers = itertools.count(1)

    def __init__(
        self,
        targets: tuple[Target, Target],
        watches: Sequence[Watch],
        rule: Rule = by_rule,
        are_releases: bool = False,
    ) -> None:
        self.rule = rule
        self.are_releases = are_releases
        self.apache_kafka, self.kshim = targets
        self.kshim_watch = watches[1]
        self.settling = {target.port: Settling(target) for target in targets}

    async def play_once(self, run: Run) -> Plays:
        apache_kafka, kshim = await asyncio.gather(
            self._play(run, self.apache_kafka), self._play(run, self.kshim)
        )
        return Plays(_in_time([apache_kafka]), _in_time([kshim]))

    async def judge(self, run: Run, plays: Plays, kafka_plays: int = KAFKA_PLAYS) -> Outcome:
        """Replay until kshim's answers match one of Apache Kafka's, or the plays are used up."""
        steps = run.history.at(run.era)
        void, asked = 0, 1
        while plays.kshim and plays.apache_kafka:
            found, theirs, ours = self._closest(run, steps, plays)
            is_differing, stale = bool(_untolerated(found)), _stale(steps, found)
            if (is_differing or stale) and self._is_void(steps, ours) and void < VOID_PLAYS:
                void += 1
                plays.kshim = _in_time([await self._play(run, self.kshim)])
            elif is_differing and asked < kafka_plays:
                more = min(asked, kafka_plays - asked)
                asked += more
                plays.apache_kafka += await self._played(run, self.apache_kafka, more)
                if self.are_releases:
                    plays.kshim += await self._played(run, self.kshim, more)
            else:
                return Outcome(
                    differences=found,
                    stale=stale,
                    answers=Counter(_answers(ours)),
                    transcript=transcript_text(steps, theirs),
                    kafka_plays=asked,
                    void=void,
                )
        return Outcome(kafka_plays=asked, void=void, is_late=True)

    async def perform(self, run: Run, kafka_plays: int = KAFKA_PLAYS) -> Outcome:
        return await self.judge(run, await self.play_once(run), kafka_plays)

    def _is_void(self, steps: Iterable[Step], kshim: Transcript) -> bool:
        """True if kshim stood still during this play. Another release plays again anyway."""
        if self.are_releases or not _has_pauses(steps):
            return False
        return self.kshim_watch.longest_s(kshim.began_s, kshim.ended_s) > STALL_S

    async def _played(self, run: Run, target: Target, count: int) -> list[Transcript]:
        """The plays in time, of so many at once."""
        return _in_time(await asyncio.gather(*(self._play(run, target) for _ in range(count))))

    async def _play(self, run: Run, target: Target) -> Transcript | None:
        """One play; None if none was in time."""
        steps = run.history.at(run.era)
        for times in [1] * VOID_PLAYS if target.delay_ms else STRETCHES:
            with contextlib.suppress(TooLate):
                group = f"group{next(self._numbers):06}"
                return await play(steps, run.era, group, target, times, self.settling[target.port])
        return None

    def _closest(
        self, run: Run, steps: Sequence[Step], plays: Plays
    ) -> tuple[list[Difference], Transcript, Transcript]:
        """The two plays that are most alike, Apache Kafka's first, with their differences before them."""

        def compared(apache_kafka: Transcript, kshim: Transcript) -> list[Difference]:
            found = differences(steps, apache_kafka, kshim)
            return self.rule(found, steps, apache_kafka, kshim) if run.history.meant_by_rule else found

        both = itertools.product(plays.apache_kafka, plays.kshim)
        each = ((compared(theirs, ours), theirs, ours) for theirs, ours in both)
        return min(each, key=lambda of: _earliest(of[0]))


def _has_pauses(steps: Iterable[Step]) -> bool:
    """Without pauses it does not matter how long the servers take."""
    return any(isinstance(step, Pause) for step in steps)


def _in_time(plays: Iterable[Transcript | None]) -> list[Transcript]:
    return [transcript for transcript in plays if transcript is not None]


def summary(outcomes: Iterable[Outcome]) -> str:
    all_ = list(outcomes)
    again = [outcome.kafka_plays - 1 for outcome in all_ if outcome.kafka_plays > 1]
    return (
        f"{len(all_)} histories, {sum(outcome.responses for outcome in all_)} responses of each server "
        f"compared; {sum(outcome.void for outcome in all_)} plays void because the server stood still; "
        f"Apache Kafka was asked {sum(again)} times again for {len(again)} histories; "
        f"{sum(outcome.is_late for outcome in all_)} could not be played in time"
    )
