"""Heartbeats that say nothing have the answers and the effects that they have when each step is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kshim.coordination.decision import Caller, Decision
from kshim.coordination.groups.consumer import shard
from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.consumer.requests import MemberHeartbeat
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


def outcome(world: World, caller: Caller, request: ConsumerGroupHeartbeatRequest) -> tuple[Decision, object]:
    """What two heartbeats lead to: the first one also looks at the topics."""
    world.coordinator.handle(CALLER, MemberHeartbeat(SILENT), world.now_ms)
    now_ms = world.now_ms + 1_000
    decision = world.coordinator.handle(caller, MemberHeartbeat(request), now_ms)
    session = world.coordinator._timers.deadline_ms(TimerKey(TimerKind.SESSION, G, request.member_id))
    return decision._replace(reports=()), session


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_quiet_heartbeat_is_answered_like_any_other(
    group: Callable[[], World], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outcome(group(), *REQUESTS[name])
    monkeypatch.setattr(shard, "answer_quiet", lambda *_: None)
    assert found == outcome(group(), *REQUESTS[name])


def test_a_settled_group_answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    answer_quiet = shard.answer_quiet
    monkeypatch.setattr(
        shard, "answer_quiet", lambda *them: answers.append(answer_quiet(*them)) or answers[-1]
    )
    outcome(settled(), CALLER, SILENT)
    assert [answer is None for answer in answers] == [True, False]
