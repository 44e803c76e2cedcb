"""Tests with some invented histories; also checks that the invented frames are valid requests."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from integration.hostile.invented.history import steps
from integration.hostile.invented.search import play
from integration.hostile.invented.vocabulary import Vocabulary
from integration.hostile.invented.writing import Writer
from integration.hostile.run import Patience
from integration.support.server import FOREIGN_COMMAND
from schemas.api_key import ApiKey
from schemas.registry import VERSIONS, decode_request

PATIENCE = Patience(factor=20, beside_load=True)
"""It is large because slices take longer on a busy machine. A request that holds the thread takes seconds."""


@pytest.mark.parametrize("api_key", VERSIONS, ids=lambda api_key: api_key.name)
def test_the_requests_of_each_api_can_be_read(api_key: ApiKey) -> None:
    vocabulary = Vocabulary()
    for version in VERSIONS[api_key]:
        for seed in range(20):
            chance = Random(seed)
            vocabulary.begin(chance)
            frame = Writer(chance, vocabulary, swells=seed % 2 == 1).write(api_key, version)
            assert int.from_bytes(frame[:4]) == len(frame) - 4
            header, _ = decode_request(frame[4:])
            assert (header.api_key, header.api_version) == (api_key, version)


def test_a_seed_makes_the_same_history_again() -> None:
    assert list(steps(7, Vocabulary())) == list(steps(7, Vocabulary()))


@pytest.mark.skipif(bool(FOREIGN_COMMAND), reason="the bounds are kshim's")
def test_bounds_are_kept(tmp_path: Path) -> None:
    broken = [played for played in play(range(40), tmp_path / "data", PATIENCE) if played.faults]
    assert not broken, "\n".join(map(str, broken))
