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
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.api.harness import PENDING
from tests.coordination.groups.consumer.members import SESSION_S, Members
from tests.coordination.groups.consumer.world import G, Given, World, held, owned, stable, target
from tests.coordination.held_runtime import result

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


KINDS = {
    "whose sender cannot wait": MemberHeartbeat(SILENT),
    "that must not wait": MemberHeartbeat(SILENT, patience=Patience.INTERVAL, is_last=False),
}
LATER_MS = 1_000


def looked(group: Callable[[], World]) -> World:
    """A group that has looked at its topics, with the first heartbeat, and a second later."""
    world = group()
    world.coordinator.handle(CALLER, MemberHeartbeat(SILENT), world.now_ms)
    world.now_ms += LATER_MS
    return world


def session_end_ms(world: World, request: ConsumerGroupHeartbeatRequest) -> int | None:
    return world.coordinator._timers.deadline_ms(TimerKey(TimerKind.SESSION, G, request.member_id))


def outcome(world: World, caller: Caller, asked: MemberHeartbeat) -> tuple[Decision, object]:
    """The decision on a heartbeat, and when its sender's session ends afterwards."""
    decision = world.coordinator.handle(caller, asked, world.now_ms)
    return decision._replace(reports=()), session_end_ms(world, asked.request)


def at_once(
    world: World, caller: Caller, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | None:
    shard = world.coordinator.shard_for(G)
    return world.coordinator.answer_at_once(shard, caller.node_id, caller, request, world.now_ms)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_quiet_heartbeat_is_answered_like_any_other(
    group: Callable[[], World], name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, request = REQUESTS[name]
    asked = KINDS[kind]._replace(request=request)
    found = outcome(looked(group), caller, asked)
    monkeypatch.setattr(shard, "quiet_member", lambda *_: None)
    assert found == outcome(looked(group), caller, asked)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", REQUESTS)
def test_an_answer_at_once_is_the_one_of_a_decision_and_the_others_change_nothing(
    group: Callable[[], World], name: str
) -> None:
    caller, request = REQUESTS[name]
    world, other = looked(group), looked(group)
    before_ms = session_end_ms(world, request)
    answer = at_once(world, caller, request)
    decision, session_ms = outcome(other, caller, MemberHeartbeat(request))
    if answer is None:
        assert session_end_ms(world, request) == before_ms
    else:
        assert [reply.response for reply in decision.replies] == [answer]
        assert session_end_ms(world, request) == session_ms
        assert decision.records == ()


def test_a_member_that_has_reached_the_epoch_of_the_target_is_answered_at_once() -> None:
    answers = {group: at_once(looked(group), CALLER, SILENT) for group in GROUPS}
    assert [group for group, answer in answers.items() if answer is not None] == [settled, with_news]
    assert at_once(settled(), CALLER, SILENT) is None, "the group has to look at the topics"


def test_another_broker_answers_nothing_at_once() -> None:
    world = looked(settled)
    assert at_once(world, CALLER._replace(node_id=7), SILENT) is None


def test_a_heartbeat_that_cannot_wait_releases_the_one_that_waits() -> None:
    world = looked(settled)
    waits = MemberHeartbeat(SILENT, patience=Patience.INTERVAL)
    parked = world.coordinator.handle(CALLER, waits, world.now_ms)
    assert parked.replies == ()
    assert at_once(world, CALLER, SILENT) is None
    decision = world.coordinator.handle(CALLER._replace(token=2), MemberHeartbeat(SILENT), world.now_ms)
    assert [reply.token for reply in decision.replies] == [1, 2]


def test_an_answer_at_once_gives_a_whole_session_and_waits_for_what_is_not_durable() -> None:
    members = Members()
    members.journal.holds = False
    assert result(members.member(0)).member_epoch == 2
    assert result(members.member(2)).error_code == ErrorCode.NONE
    for _ in range(3):
        members.clock.advance(SESSION_S - 1)
        assert result(members.heartbeat_at_once(2)).error_code == ErrorCode.NONE
    members.journal.holds = True
    members.commit(member_id="m", generation_id_or_member_epoch=2)
    waits = members.heartbeat_at_once(2)
    assert result(waits) is PENDING, "another broker may lead the group when the journal fails"
    members.journal.release()
    assert result(waits).error_code == ErrorCode.NONE
    members.journal.holds = False
    members.clock.advance(SESSION_S)
    assert result(members.heartbeat_at_once(2)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
