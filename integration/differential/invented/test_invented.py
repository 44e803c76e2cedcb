"""Apache Kafka and kshim answer invented histories in the same way.

`python -m integration.differential --histories 2000 --seed 1000` plays many more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from integration.differential.__main__ import run_of, told_shortly
from integration.differential.invented import invent
from integration.differential.playing.pairs import Pair
from integration.differential.playing.run import play_all, summary

HISTORIES: Mapping[str, range] = {
    "groups": range(200),
    "records": range(100),
    "admin": range(60),
    "transactions": range(60),
}
SHRUNK = 3


@pytest.mark.parametrize("of", HISTORIES)
def test_both_answer_invented_histories_the_same(
    of: str, pair_named: Callable[[str], Pair], report: Callable[[str], None]
) -> None:
    pair = pair_named("plain")
    runs = {run_of(each): each for each in (invent(number, of) for number in HISTORIES[of])}
    outcomes = asyncio.run(play_all(runs, {"plain": pair}))
    report(f"invented, of {of}: {summary(outcomes.values())}")
    late = [str(run) for run, outcome in outcomes.items() if outcome.is_late]
    assert not late, f"this machine is too busy for the time-outs of {late}"
    differing = [runs[run] for run, outcome in outcomes.items() if outcome.untolerated]
    told = asyncio.run(told_shortly(differing[:SHRUNK], pair))
    assert not differing, "\n".join([f"{len(differing)} histories differ", *told])
