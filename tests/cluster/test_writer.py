"""The cluster's writer: one change after the other, however many there are and whatever becomes of them."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from kshim.cluster.writer import Writer
from kshim.storage.memory import MemoryStore
from tests.api.harness import collect


@pytest.fixture
def writer() -> Writer:
    return Writer(MemoryStore().metadata)


async def _number(text: str) -> int:
    return int(text)


def test_a_change_waits_for_the_one_before_it(writer: Writer) -> None:
    first: Deferred[str] = Deferred()
    seen: list[str] = []

    async def second() -> str:
        seen.append("second")
        return "second"

    results = collect(writer.run(lambda: first)), collect(writer.run(second))
    assert seen == []
    first.callback("first")
    assert (seen, results) == (["second"], (["first"], ["second"]))


def test_a_change_that_fails_does_not_keep_the_next(writer: Writer) -> None:
    failed = writer.run(_number, "x")
    assert collect(writer.run(_number, "7")) == [7]
    failed.addErrback(lambda failure: failure.trap(ValueError))


def test_any_number_of_changes_may_wait(writer: Writer) -> None:
    first: Deferred[None] = Deferred()
    writer.run(lambda: first)
    changes = [collect(writer.run(_number, str(number))) for number in range(5000)]
    first.callback(None)
    assert changes == [[number] for number in range(5000)]
