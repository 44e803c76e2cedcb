"""Apache Kafka and kshim answer histories in the same way that nobody wrote.

`python -m integration.differential --histories 2000 --seed 1000` plays many more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from integration.differential.__main__ import run_of, told_shortly
from integration.differential.invented import invent
from integration.differential.pairs import Pair
from integration.differential.run import play_all, summary

HISTORIES = range(200)
SHRUNK = 3


def test_both_answer_invented_histories_the_same(
    pair_named: Callable[[str], Pair], report: Callable[[str], None]
) -> None:
    pair = pair_named("plain")
    runs = {run_of(each): each for each in map(invent, HISTORIES)}
    outcomes = asyncio.run(play_all(runs, {"plain": pair}))
    report(f"invented: {summary(outcomes.values())}")
    late = [str(run) for run, outcome in outcomes.items() if outcome.is_late]
    assert not late, f"this machine is too busy for the time-outs of {late}"
    differing = [runs[run] for run, outcome in outcomes.items() if outcome.untolerated]
    told = asyncio.run(told_shortly(differing[:SHRUNK], pair))
    assert not differing, "\n".join([f"{len(differing)} histories differ", *told])
