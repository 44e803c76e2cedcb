"""Invents the steps of a history, from a seed and from values in earlier answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from integration.hostile.invented.vocabulary import Vocabulary
from integration.hostile.invented.writing import Writer
from schemas.api_key import ApiKey
from schemas.registry import VERSIONS

CHAINS: Final = (
    (ApiKey.JOIN_GROUP, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.LEAVE_GROUP),
    (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE),
    (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.END_TXN),
    (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN),
    (ApiKey.CREATE_TOPICS, ApiKey.METADATA, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS),
    (ApiKey.CREATE_TOPICS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS),
    (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.DELETE_RECORDS),
    (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS),
)
"""Sequences of requests that rely on each other."""
MOST_SENT_BYTES: Final = 8_000_000
"""Most bytes that one step sends, on all its connections together."""


Weighted = tuple[tuple[int, int], ...]
"""Pairs of a value and its weight in a random choice."""


@dataclass(frozen=True, slots=True)
class Temper:
    """The probabilities that the steps of a history share."""

    swells: float
    """The probability that a request has long arrays and texts."""
    reads: float
    """The probability that answers are read."""
    repeats: Weighted = ((1, 30), (3, 5), (20, 2), (100, 1))
    connections: Weighted = ((1, 20), (2, 5), (10, 1))


TEMPERS: Final = (
    Temper(swells=0.05, reads=0.9),
    Temper(swells=0.6, reads=0.8, repeats=((1, 1),), connections=((1, 3), (3, 1))),
    Temper(swells=0.9, reads=0.7, repeats=((1, 3), (10, 1))),
    Temper(swells=0.3, reads=0.1, repeats=((1, 3), (30, 1)), connections=((40, 1), (80, 1))),
    Temper(swells=0.1, reads=0.5, repeats=((30, 2), (300, 1)), connections=((1, 3), (10, 1))),
)
TEMPER_WEIGHTS: Final = (6, 2, 2, 1, 1)
"""How often each temper is chosen: those with many requests or connections take a hundred times as long."""


@dataclass(frozen=True, slots=True)
class Step:
    """A frame, and how it is sent."""

    api_key: ApiKey
    version: int
    frame: bytes
    repeats: int
    """How often each connection sends the frame before it reads."""
    connections: int
    reads: bool

    def __str__(self) -> str:
        unread = "" if self.reads else ", unread"
        return (
            f"{self.api_key.title} v{self.version} of {len(self.frame):,} bytes, {self.repeats} times on "
            f"{self.connections} connections{unread}"
        )


def steps(seed: int, vocabulary: Vocabulary) -> Iterator[Step]:
    """Yield the steps of a history. Each step is made after the one before was answered."""
    chance = Random(seed)
    (temper,) = chance.choices(TEMPERS, TEMPER_WEIGHTS)
    vocabulary.begin(chance)
    for api_key in _api_keys(chance):
        version = chance.choice(VERSIONS[api_key])
        frame = Writer(chance, vocabulary, chance.random() < temper.swells).write(api_key, version)
        repeats, connections = _pick(chance, temper.repeats), _pick(chance, temper.connections)
        most = max(1, MOST_SENT_BYTES // len(frame))
        connections = min(connections, most)
        repeats = min(repeats, max(1, most // connections))
        yield Step(api_key, version, frame, repeats, connections, chance.random() < temper.reads)


def _api_keys(chance: Random) -> list[ApiKey]:
    chain = chance.choice(CHAINS) if chance.random() < 0.6 else ()
    return [*chain, *(chance.choice(list(VERSIONS)) for _ in range(chance.randint(1, 4)))]


def _pick(chance: Random, weighted: Weighted) -> int:
    values, weights = zip(*weighted, strict=True)
    return int(chance.choices(values, weights)[0])
