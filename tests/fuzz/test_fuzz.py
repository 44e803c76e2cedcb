"""A short search of every target, and what longer ones have found; `python -m tests.fuzz` runs long ones."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.mutation import mutated
from tests.fuzz.search import Search
from tests.fuzz.target import MAX_INPUT_BYTES, Target, examine, examine_memory
from tests.fuzz.targets import TARGETS

EXECUTIONS = 300
BUSY_SECONDS = 10.0
"""For one input, on a machine that does other things too."""
VECTORS = sorted((Path(__file__).parent / "vectors").glob("*.hex"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", TARGETS)
def test_a_short_search_finds_nothing(name: str) -> None:
    search = Search(TARGETS[name], seed=1, max_seconds=BUSY_SECONDS)
    search.run(EXECUTIONS)
    assert [finding.report for finding in search.findings.values()] == []
    assert search.executions >= EXECUTIONS


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_what_was_once_found(path: Path) -> None:
    name = max((name for name in TARGETS if path.name.startswith(f"{name}-")), key=len)
    outcome = examine(TARGETS[name], bytes.fromhex(path.read_text()), BUSY_SECONDS)
    assert outcome.finding is None, outcome.finding.report


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_valid(name: str) -> None:
    """Most of them are read, so that a search does not begin with what is refused."""
    target = TARGETS[name]
    shapes = [examine(target, data, BUSY_SECONDS).shape for data in target.seeds(Random(3))]
    assert "failed" not in shapes
    assert sum(shape.startswith("read") for shape in shapes) > len(shapes) / 2


# ---- the search itself


def _read(data: bytes) -> bytes:
    if not data:
        raise EOFError
    if data[0] == 0xFE:
        raise ValueError("fault")
    return data


def _check(data: bytes, found: bytes | None) -> None:
    assert found is None or b"\xfd" not in found


FAULTY = Target("faulty", _read, (EOFError,), _check, lambda chance: [b"seed"])


def test_a_fault_is_found_once_a_place() -> None:
    search = Search(FAULTY, seed=0)
    search.run(3_000)
    reports = [finding.report.splitlines()[-1] for finding in search.findings.values()]
    assert sorted(re.sub(r":.*|where.*", "", report).strip() for report in reports) == [
        "AssertionError",
        "ValueError",
    ]


def test_a_seed_is_a_whole_search() -> None:
    once, again = (Search(TARGETS["records"], seed=5, max_seconds=BUSY_SECONDS) for _ in range(2))
    once.run(EXECUTIONS)
    again.run(EXECUTIONS)
    assert once.corpus == again.corpus
    other = Search(TARGETS["records"], seed=6, max_seconds=BUSY_SECONDS)
    other.run(EXECUTIONS)
    assert other.corpus != once.corpus


def test_what_takes_too_long_or_too_much() -> None:
    def read(data: bytes) -> int:
        return sum(bytearray(3_000_000))

    hungry = Target("hungry", read, (), lambda data, found: None, lambda chance: [])
    slow = examine(hungry, b"12", max_seconds=0.0).finding
    assert slow is not None
    assert slow.report.startswith("2 bytes took 0.")
    large = examine_memory(hungry, b"12")
    assert large is not None
    assert large.report.startswith("2 bytes took 3,")


def test_no_change_is_larger_than_an_input_may_be() -> None:
    chance = Random(0)
    sizes = [len(mutated(bytes(60_000), [bytes(60_000)], [b"word"], chance)) for _ in range(2_000)]
    assert max(sizes) == MAX_INPUT_BYTES
