"""Invent histories and play them against Apache Kafka and kshim: `python -m integration.differential --help`.

Each history that differs is shrunk as far as possible and printed in the form of `histories`, with both
answers.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from integration.differential.invented import AUTHORS, Invented, invent
from integration.differential.playing import pairs
from integration.differential.playing.run import AT_ONCE, Outcome, Run, Stage, play_all, summary
from integration.differential.playing.shrink import shrink
from integration.differential.playing.stalls import watched

SHRUNK = 5
"""At most so many of the differing histories are shrunk."""
SHRINK_PLAYS = 6
"""How often Apache Kafka is asked about each candidate."""
BATCH = 200


def run_of(invented: Invented) -> Run:
    return Run(invented.history(), invented.era)


async def told_shortly(some: Iterable[Invented], pair: pairs.Pair, at_once: int = AT_ONCE) -> list[str]:
    """Shrink each history as far as the servers still differ, and show it with their answers."""
    places = asyncio.Semaphore(at_once)
    async with watched(pair.targets) as watches:
        stage = Stage(pair.targets, watches)

        async def differs(invented: Invented) -> bool:
            async with places:
                return bool((await stage.perform(run_of(invented), SHRINK_PLAYS)).untolerated)

        async def told(invented: Invented) -> str:
            small = await shrink(invented, differs)
            outcome = await stage.perform(run_of(small))
            return "\n".join([str(small), *map(str, outcome.untolerated)])

        return list(await asyncio.gather(*map(told, some)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="integration.differential", description=__doc__)
    parser.add_argument("--of", choices=AUTHORS, default="groups", help="what the histories are about")
    parser.add_argument("--histories", type=int, default=2000, help="how many histories")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first history")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="how many at the same time")
    parser.add_argument("--shrink", type=int, default=SHRUNK, help="how many differing histories are shrunk")
    parser.add_argument("--until", type=int, default=SHRUNK, help="stop when so many histories differ")
    parser.add_argument("--answers", action="store_true", help="print how often each API gave each answer")
    options = parser.parse_args()
    numbers = range(options.seed, options.seed + options.histories)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        pair = pairs.start("plain", Path(directory) / "plain")
        try:
            outcomes: list[Outcome] = []
            differing: list[Invented] = []
            for start in range(0, len(numbers), BATCH):
                some = {
                    run_of(each): each
                    for each in (invent(number, options.of) for number in numbers[start : start + BATCH])
                }
                played = asyncio.run(play_all(some, {"plain": pair}, options.at_once))
                outcomes += played.values()
                differing += [some[run] for run, outcome in played.items() if outcome.untolerated]
                for run, outcome in played.items():
                    if outcome.untolerated:
                        print(f"{run.history.title} differs at first in {outcome.untolerated[0]}")
                print(
                    f"{time.monotonic() - began:.0f} s: {len(differing)} differ; {summary(outcomes)}",
                    flush=True,
                )
                if len(differing) >= options.until:
                    break
            for text in asyncio.run(told_shortly(differing[: options.shrink], pair, options.at_once)):
                print(text, flush=True)
        finally:
            pair.stop()
    if options.answers:
        counts: Counter[str] = sum((outcome.answers for outcome in outcomes), Counter())
        for answer, count in sorted(counts.items()):
            print(f"{count:8} {answer}")
    raise SystemExit(bool(differing))


if __name__ == "__main__":
    main()
