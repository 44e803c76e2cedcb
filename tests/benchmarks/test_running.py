"""The sides are measured in turns, and a load that fails does not end the case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import running
from benchmarks.cases import Case
from benchmarks.generator import GeneratorFailed, Load
from benchmarks.processor import Measured
from benchmarks.running import Failed, Plan, Series, run
from benchmarks.servers import APACHE_KAFKA, Settings, Side, Target

CASE = Case("", "module:function", {"one": {"number": 1}, "bad": {"number": 2}, "two": {"number": 3}})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, float]]:
    """The calls of generators: server, number of the load, seconds."""
    asked: list[tuple[str, int, float]] = []

    @contextmanager
    def all_serving(sides: list[Side], _: Path, __: Settings) -> Iterator[dict[Side, Target]]:
        yield {side: Target(side.kind) for side in sides}

    def generate(_: str, target: Target, load: Load, seconds: float) -> Measured:
        asked.append((target.bootstrap, load["number"], seconds))
        if load["number"] == 2:
            raise GeneratorFailed("the reason")
        return Measured({"requests/s": 100.0})

    monkeypatch.setattr(running, "all_serving", all_serving)
    monkeypatch.setattr(running, "generate", generate)
    return asked


def test_the_sides_take_turns_after_a_warm_up(asked: list[tuple[str, int, float]]) -> None:
    found = list(run("case", CASE, Plan(APACHE_KAFKA, rounds=3, seconds=9, load="one")))
    kshim, kafka = ("kshim", 1), ("apache-kafka", 1)
    assert [it[:2] for it in asked] == [kshim, kafka, kshim, kafka, kafka, kshim, kshim, kafka]
    assert [seconds for *_, seconds in asked] == [running.WARM_UP_S] * 2 + [9] * 6
    ((ours, theirs),) = (it for it in found if not isinstance(it, Failed))
    assert len(ours.rounds) == len(theirs.rounds) == 3


def test_after_a_load_that_fails_the_next_one_goes_on(asked: list[tuple[str, int, float]]) -> None:
    first, failed, last = run("case", CASE, Plan(rounds=1))
    assert failed == Failed("bad", "kshim commit: the reason")
    for found, load in ((first, "one"), (last, "two")):
        assert isinstance(found, list)
        assert [(type(it), it.load) for it in found] == [(Series, load)]
