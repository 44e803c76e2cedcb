"""Invented histories of consumer groups are answered alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from integration.differential.members.__main__ import two_sides
from integration.differential.members.history import History
from integration.differential.members.side import Side
from integration.differential.playing.pairs import Pair

SEEDS = range(100)


@pytest.fixture(scope="module")
def sides(pair_named: Callable[[str], Pair]) -> Iterator[tuple[Side, Side]]:
    """Apache Kafka and kshim, with TOPICS."""
    with two_sides(pair_named("members")) as both:
        yield both


@pytest.mark.parametrize("seed", SEEDS)
def test_both_answer_alike(seed: int, sides: tuple[Side, Side]) -> None:
    History(seed, sides).play()
