"""Heartbeats that say nothing have the answers and the effects that they have when each step is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kshim.coordination.decision import Caller, Decision
from kshim.coordination.groups.consumer import shard
from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
from kshim.coordination.groups.timers import TimerKey, TimerKind
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.world import G, Given, World, held, owned, stable, target

CALLER = Caller(1, 1, "client", "/host")
SILENT = ConsumerGroupHeartbeatRequest(group_id=G, member_id="m", member_epoch=10)
MEMBER = stable("m", 10, ("foo",), held(10, foo=(0, 1, 2)))


def settled() -> World:
    return World(Given(10, [(MEMBER, target(foo=(0, 1, 2)))]))


def with_news() -> World:
    return World(Given(10, [(MEMBER, target(foo=(0, 1)))]))


def before_its_target() -> World:
    return World(Given(11, [(MEMBER, target(foo=(0, 1, 2)))], assignment_epoch=10))


def with_an_expression() -> World:
    return World(Given(10, [(replace(MEMBER, regex="b.*"), target(foo=(0, 1, 2)))]))


def giving_up() -> World:
    member = replace(MEMBER, state=MemberState.UNREVOKED_PARTITIONS, revoking=held(10, foo=(3,)))
    return World(Given(10, [(member, target(foo=(0, 1, 2)))]))


GROUPS = (settled, with_news, before_its_target, with_an_expression, giving_up)
REQUESTS = {
    "says nothing": (CALLER, SILENT),
    "of the epoch before": (CALLER, replace(SILENT, member_epoch=9)),
    "of the next epoch": (CALLER, replace(SILENT, member_epoch=11)),
    "of nobody": (CALLER, replace(SILENT, member_id="n")),
    "owns partitions": (CALLER, replace(SILENT, topic_partitions=owned(foo=(0, 1)))),
    "names topics": (CALLER, replace(SILENT, subscribed_topic_names=("bar",))),
    "comes from elsewhere": (CALLER._replace(client_host="/other"), SILENT),
    "has another client id": (CALLER._replace(client_id="other"), SILENT),
    "has an instance id": (CALLER, replace(SILENT, instance_id="i")),
}


AT_ONCE = {
    "whose sender cannot wait": MemberHeartbeat(SILENT),
    "that must not wait": MemberHeartbeat(SILENT, patience=Patience.INTERVAL, is_last=False),
}


def outcome(world: World, caller: Caller, asked: MemberHeartbeat) -> tuple[Decision, object]:
    """What two heartbeats lead to: the first one also looks at the topics."""
    world.coordinator.handle(CALLER, MemberHeartbeat(SILENT), world.now_ms)
    now_ms = world.now_ms + 1_000
    decision = world.coordinator.handle(caller, asked, now_ms)
    session = world.coordinator._timers.deadline_ms(TimerKey(TimerKind.SESSION, G, asked.request.member_id))
    return decision._replace(reports=()), session


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("kind", AT_ONCE)
def test_a_quiet_heartbeat_is_answered_like_any_other(
    group: Callable[[], World], name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, request = REQUESTS[name]
    asked = AT_ONCE[kind]._replace(request=request)
    found = outcome(group(), caller, asked)
    monkeypatch.setattr(shard, "quiet_member", lambda *_: None)
    assert found == outcome(group(), caller, asked)


@pytest.mark.parametrize("kind", AT_ONCE)
def test_a_settled_group_answers_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    members = []
    quiet_member = shard.quiet_member
    monkeypatch.setattr(
        shard, "quiet_member", lambda *them: members.append(quiet_member(*them)) or members[-1]
    )
    outcome(settled(), CALLER, AT_ONCE[kind])
    assert members[0] is None, "it looks at the topics"
    assert members[-1] is not None


def test_a_heartbeat_that_cannot_wait_releases_the_one_that_waits() -> None:
    world = settled()
    world.coordinator.handle(CALLER, MemberHeartbeat(SILENT), world.now_ms)
    waits = MemberHeartbeat(SILENT, patience=Patience.INTERVAL)
    parked = world.coordinator.handle(CALLER, waits, world.now_ms)
    assert parked.replies == ()
    decision = world.coordinator.handle(CALLER._replace(token=2), MemberHeartbeat(SILENT), world.now_ms)
    assert [reply.token for reply in decision.replies] == [1, 2]
