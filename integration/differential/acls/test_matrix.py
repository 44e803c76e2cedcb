"""Apache Kafka and kshim answer users alike who may do nothing, just enough, or one thing too few."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from integration.differential.acls.matrix import Row, play, prepare, rows
from integration.differential.acls.world import World

ROWS = rows()
Ids = Mapping[str, UUID]


@pytest.fixture(scope="session")
def prepared(worlds: tuple[World, World]) -> tuple[Ids, Ids]:
    """The ids of both servers' topics, once all is made that the cells are about."""
    with ThreadPoolExecutor() as threads:
        theirs, ours = threads.map(lambda world: prepare(world, ROWS), worlds)
    return theirs, ours


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_both_answer_the_same(
    row: Row, worlds: tuple[World, World], prepared: tuple[Ids, Ids], compared: Callable[[int], None]
) -> None:
    for version in row.case.each_version():
        theirs, ours = (play(world, row, version, ids) for world, ids in zip(worlds, prepared, strict=True))
        if row.case.meant and row.choice == "enough":
            assert ours != theirs, f"v{version}: no longer differs ({row.case.meant})"
        else:
            assert ours == theirs, f"v{version}"
    compared(len(list(row.case.each_version())))
