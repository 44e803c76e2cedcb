"""A fault of ours in the middle of a group's work: the group goes on; cases 35 and 121."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pytest

from kshim.coordination.groups.consumer import regexes
from kshim.coordination.groups.consumer.assignors.spec import GroupSpec
from kshim.coordination.groups.consumer.assignors.table import ASSIGNORS
from kshim.coordination.groups.consumer.requests import MemberHeartbeat
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.subscriptions import Resolved
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.world import (
    BAR,
    FOO,
    START_MS,
    G,
    Given,
    World,
    held,
    owned,
    shown,
    stable,
    target,
)

ALL_OF_FOO = range(6)


class Fails(Exception):
    """What the faulty function raises."""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Assignors fail at their second step, until the patch is undone."""

    def fail(spec: GroupSpec) -> Iterator[int]:
        yield 1
        raise Fails

    with monkeypatch.context() as patch:
        for name in ASSIGNORS:
            patch.setitem(ASSIGNORS, name, fail)
        yield patch


def test_35_an_assignor_that_fails(failing: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    given = [(stable("a", names=("foo",), assigned=held(10, foo=ALL_OF_FOO)), target(foo=ALL_OF_FOO))]
    world = World(Given(10, given))
    answer = world.join("b", "foo")
    assert (answer.error_code, answer.member_epoch, shown(answer)) == (0, 10, {})
    assert (world.group().epoch, world.group().state) == (11, GroupState.ASSIGNING)
    for _ in range(3):
        answer = world.heartbeat("a", 10, topic_partitions=owned(foo=ALL_OF_FOO))
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 10, None)
        world.advance(1_000)
    (logged,) = caplog.messages
    assert logged == "internal error: group g: no target for epoch 11, the last one stays"
    failing.undo()
    world.heartbeat("b", -1)
    assert world.heartbeat("a", 10, topic_partitions=owned(foo=ALL_OF_FOO)).member_epoch == 12


def test_35_the_group_is_loaded_again(failing: pytest.MonkeyPatch) -> None:
    world = World()
    assert world.join("a", "foo").error_code == 0
    failing.undo()
    world.reload()
    world.advance()
    assert shown(world.heartbeat("a", 1)) == {FOO: {*ALL_OF_FOO}}


def test_121_a_search_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    world, fails = World(), True

    def visible(names: Collection[str]) -> Collection[str]:
        if fails:
            raise Fails
        return names

    joining = ConsumerGroupHeartbeatRequest(
        group_id=G,
        member_id="a",
        rebalance_timeout_ms=5_000,
        subscribed_topic_regex="fo+",
        topic_partitions=(),
    )
    assert world.ask(MemberHeartbeat(joining, visible)).error_code == 0
    world.advance()
    assert (world.records, world.group().search) == ((), None)
    assert caplog.messages == ["internal error: group g: the search for topics has failed"]
    fails = False
    world.advance(regexes.SHORTEST_REFRESH_MS)
    assert world.group().subscriptions.resolved["fo+"].topics == {"foo"}


def test_121_an_expression_that_is_not_valid_any_more(caplog: pytest.LogCaptureFixture) -> None:
    """A log may hold what another implementation found valid. Other members get their topics all the same."""
    given = [(stable("a", names=(), regex="["), target()), (stable("b", names=(), regex="ba."), target())]
    long_ago = Resolved(frozenset({"foo"}), 0, START_MS - 600_001)
    world = World(Given(10, given, resolved={"[": long_ago}))
    world.heartbeat("b", 10)
    world.advance()
    resolved = world.group().subscriptions.resolved
    assert (resolved["["].topics, resolved["ba."].topics) == (frozenset(), {"bar"})
    assert caplog.messages == ["group g: ignored the invalid expression `[`: missing ]: ["]
    assert shown(world.heartbeat("b", 10)) == {BAR: {0, 1, 2}}
