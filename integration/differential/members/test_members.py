"""Invented histories of consumer groups are answered alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from integration.differential.members.history import TOPICS, History
from integration.differential.members.side import Side
from integration.differential.playing.pairs import Pair, create_topic

SEEDS = range(100)


@pytest.fixture(scope="module")
def sides(pair_named: Callable[[str], Pair]) -> Iterator[tuple[Side, Side]]:
    """Apache Kafka and kshim, with TOPICS."""
    pair = pair_named("members")
    made = []
    for address in (pair.apache_kafka, pair.kshim):
        ids = {name: create_topic(address, name, partitions) for name, partitions in TOPICS.items()}
        made.append(Side(address, ids))
    yield made[0], made[1]
    for each in made:
        each.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_both_answer_alike(seed: int, sides: tuple[Side, Side]) -> None:
    assert History(seed, sides).play() > 0
