"""Warnings of several kshim that share groups with different settings."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.storage.interfaces import StorageError
from kshim.upstream.fellows import new_fellow
from kshim.upstream.shards.membership import Assigned
from kshim.upstream.shards.sharing import REACH_S, SharedShards

HERE = 0
EVERYWHERE = new_fellow({"PLAINTEXT": Endpoint("0.0.0.0", 9092)})
OTHER = new_fellow({"PLAINTEXT": Endpoint("b", 9092)})


@pytest.fixture
def shards() -> SharedShards:
    nothing: Any = None
    return SharedShards(Config(), Clock(), nothing, nothing, None, HERE)


@pytest.mark.parametrize("everybody", [(EVERYWHERE, OTHER), (EVERYWHERE, EVERYWHERE)])
def test_who_starts_where_clients_cannot_come_starts_not(
    shards: SharedShards, everybody: tuple[Any, ...]
) -> None:
    """Also if two have the same address, which is another one on each machine."""
    first = shards._first = Deferred()
    shards._assign(Assigned(frozenset(), {}, everybody))
    failures: list[Any] = []
    first.addErrback(failures.append)
    assert failures[0].check(StorageError)
    assert "0.0.0.0:9092, where one of them listens" in str(failures[0].value)


def test_who_runs_says_so_once(shards: SharedShards, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        shards._assign(Assigned(frozenset(), {}, (EVERYWHERE, OTHER)))
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "start it with --advertise" in warnings[0]


def test_who_was_alone_there_is_not_told_to_clients(shards: SharedShards) -> None:
    shards._assign(Assigned(frozenset(), {}, (EVERYWHERE,)))
    shards._assign(Assigned(frozenset(), {}, (OTHER,)))
    assert shards.gone() == ()
    shards._assign(Assigned(frozenset(), {}, (new_fellow({"PLAINTEXT": Endpoint("c", 1)}),)))
    assert shards.gone() == (OTHER,)


class Starting(SharedShards):
    """A kshim that listens everywhere and starts, while another one is a member, at least for now."""

    def __init__(self, clock: Clock) -> None:
        nothing: Any = None
        super().__init__(Config(), clock, nothing, nothing, None, HERE)
        self._addresses = lambda: EVERYWHERE.addresses
        self._before = Assigned(frozenset(), {}, (OTHER,))
        self.is_gone = False
        self.checked = Deferred.fromCoroutine(self._check_reach())

    async def _look_before(self) -> None:
        if self.is_gone:
            self._before = None


def test_who_has_ended_without_a_word_keeps_nobody_from_starting() -> None:
    clock = Clock()
    shards = Starting(clock)
    clock.advance(REACH_S)
    assert not shards.checked.called
    shards.is_gone = True
    clock.advance(REACH_S)
    assert shards.checked.called
    assert not clock.getDelayedCalls()


def test_who_is_there_does() -> None:
    clock = Clock()
    failures: list[Any] = []
    Starting(clock).checked.addErrback(failures.append)
    clock.pump([REACH_S] * 8)
    assert failures[0].check(StorageError)
