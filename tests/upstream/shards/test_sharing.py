"""What a process makes of its assignments, and of shards that do not answer it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.storage.interfaces import StorageError
from kshim.upstream.fellows import new_fellow
from kshim.upstream.shards.membership import Assigned
from kshim.upstream.shards.reach import PROBE_S, SILENT_S
from kshim.upstream.shards.sharing import REACH_S, SharedShards
from kshim.upstream.shards.tenure import Seen

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
        self._roster.addresses = lambda: EVERYWHERE.addresses
        self._roster.before = Assigned(frozenset(), {}, (OTHER,))
        self.is_gone = False
        self.checked = Deferred.fromCoroutine(self._check_reach())

    async def _look_before(self) -> None:
        if self.is_gone:
            self._roster.before = None


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


class Told:
    """A membership that only remembers what was told."""

    told_silent: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self.count = 0

    def tell(self) -> None:
        self.count += 1


def cut_off(clock: Clock, *everybody: Any) -> tuple[SharedShards, Told, list[int]]:
    """A process that leads shard 0 of two, its membership, and the shards that answer it."""
    nothing: Any = None
    shards = SharedShards(Config(), clock, nothing, nothing, None, HERE)
    answering = [0, 1]

    class Log:
        def end(self, shard: int) -> Deferred[int]:
            if shard in answering:
                shards._reach.heard(shard)
            return Deferred()

    told: Any = Told()
    shards._log = Log()  # type: ignore[assignment]
    shards._make_shards(2)
    shards._shards[0].want = lambda: None  # type: ignore[method-assign]
    shards._assign(Assigned(frozenset({0}), {}, everybody))
    shards._membership = told
    clock.advance(100)
    shards._poll()
    return shards, told, answering


def pass_s(clock: Clock, for_s: float) -> None:
    clock.pump([0.05] * round(for_s / 0.05))


def test_a_shard_that_does_not_answer_is_handed_over(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    _, told, answering = cut_off(clock, OTHER, new_fellow({"PLAINTEXT": Endpoint("c", 1)}))
    pass_s(clock, 10)
    assert told.count == 0
    answering.remove(0)
    pass_s(clock, SILENT_S - 0.5)
    assert told.count == 0
    pass_s(clock, 1 + PROBE_S)
    assert told.count == 1
    (line,) = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert line == (
        "1 shards of __kshim_groups have not answered for 5 s, such as shard 0: another kshim is to lead them"
    )
    told.told_silent = frozenset({0})
    pass_s(clock, 20)
    assert told.count == 1
    answering.append(0)
    pass_s(clock, 2 * PROBE_S)
    assert told.count == 2, "it may lead the shard again"


def test_a_shard_of_another_process_is_its_affair() -> None:
    clock = Clock()
    _, told, answering = cut_off(clock, OTHER, new_fellow({"PLAINTEXT": Endpoint("c", 1)}))
    answering.remove(1)
    pass_s(clock, 20)
    assert told.count == 0


def test_who_is_alone_keeps_its_shards() -> None:
    clock = Clock()
    _, told, answering = cut_off(clock, OTHER)
    answering.clear()
    pass_s(clock, 20)
    assert told.count == 0


def test_a_process_that_leads_nothing_that_it_should_is_not_ready(shards: SharedShards) -> None:
    assert shards.why_not_ready() == "kshim is not yet a member of group __kshim of the upstream"
    shards._assign(Assigned(frozenset(), {}, (OTHER,)))
    assert shards.why_not_ready() == "", "it has nothing to lead"
    shards, _, _ = cut_off(Clock(), OTHER)
    assert shards.why_not_ready() == (
        "none of the 1 shards of __kshim_groups that this kshim is to lead is led"
    )
    assert (shards.seen().assigned, shards.seen().led) == (1, 0)
    vars(shards._shards[0])["_tenure"] = SimpleNamespace(seen=lambda now_ms: Seen(2, 300, 400))
    assert shards.why_not_ready() == ""
    seen = shards.seen()
    assert (seen.led, seen.queued, seen.lag_s, seen.proof_age_s) == (1, 2, 0.3, 0.4)
