"""Consumer groups as people are shown them, and what an administrator can make happen in them."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.member import GOES_AWAY, MemberState
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
from kshim.coordination.groups.consumer.seen import SeenMember
from kshim.coordination.groups.rebalance_record import Who
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from schemas.consumer_protocol import decode_assignment, partitions_of
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.world import FOO, G, World, owned


@pytest.fixture
def world() -> World:
    return World()


def see(world: World) -> SeenGroup:
    seen = world.coordinator.see(G)
    assert seen is not None
    return seen


def waits(world: World) -> Any:
    found = world.coordinator.waits_for(G)
    assert found is not None
    return found


def partitions(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    return sorted(index for _, index in partitions_of(decode_assignment(assignment).assigned_partitions))


def two_members(world: World) -> None:
    """A has given up half of its partitions, and b has not got them yet."""
    world.join("a", "foo")
    world.join("b", "foo", instance_id="i")
    world.heartbeat("a", 2)


def test_the_members_and_what_they_have(world: World) -> None:
    two_members(world)
    seen = see(world)
    assert (seen.state, seen.generation, seen.assignment_epoch) == ("Reconciling", 3, 3)
    assert (seen.protocol_type, seen.protocol, seen.leader) == ("consumer", "uniform", "")
    assert [who.member_id for who in seen.members] == ["a", "b"]
    assert [who.group_instance_id for who in seen.members] == [None, "i"]
    assert [partitions(who.assignment) for who in seen.members] == [[0, 1, 2, 3, 4, 5], []]
    targets = [partitions(who.target) for who in seen.members if isinstance(who, SeenMember)]
    assert sorted(index for target in targets for index in target) == [0, 1, 2, 3, 4, 5]
    assert [len(target) for target in targets] == [3, 3]
    assert world.coordinator.group_ids() == [G]


def test_an_absent_group(world: World) -> None:
    assert (world.coordinator.see(G), world.coordinator.waits_for(G)) == (None, None)


def test_it_waits_for_members_that_give_up_partitions_and_that_get_them(world: World) -> None:
    world.join("a", "foo")
    world.join("b", "foo")
    now = waits(world)
    assert (now["to_revoke"], now["to_get"], now["to_hear"]) == ([], ["b"], ["a"])
    assert now["until_ms"] is None
    world.heartbeat("a", 2)
    now = waits(world)
    assert (now["to_revoke"], now["to_get"], now["to_hear"]) == (["a"], ["b"], [])
    assert now["until_ms"] == world.now_ms + 5_000
    asked_ms = world.now_ms
    world.advance(1_000)
    (revoking,) = waits(world)["revoking"]
    given_up = sorted(world.member("a").revoking[FOO])
    assert (revoking["member_id"], revoking["partitions"]) == ("a", {"foo": given_up})
    assert (revoking["since_ms"], revoking["until_ms"]) == (asked_ms, asked_ms + 5_000)
    assert now["members"] == [Who("a", "client", "/host"), Who("b", "client", "/host")]
    world.heartbeat("a", 2, topic_partitions=owned(foo=sorted(world.member("a").assigned[FOO])))
    world.heartbeat("b", 3)
    now = waits(world)
    assert (now["state"], now["to_revoke"], now["to_get"]) == ("Stable", [], [])
    assert now["revoking"] == []


def test_a_rebalance_that_is_asked_for(world: World) -> None:
    world.join("a", "foo")
    epoch = world.group().epoch
    assert world.ask(ForceRebalance(G)) is ErrorCode.NONE
    world.advance()
    assert (world.group().epoch, world.group().assignment_epoch) == (epoch + 1, epoch + 1)
    assert world.heartbeat("a", epoch).member_epoch == epoch + 1


def test_a_rebalance_of_an_empty_or_an_absent_group(world: World) -> None:
    assert world.ask(ForceRebalance(G)) is ErrorCode.GROUP_ID_NOT_FOUND
    world.join("a", "foo")
    world.heartbeat("a", -1)
    assert world.ask(ForceRebalance(G)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_whose_session_is_ended(world: World) -> None:
    two_members(world)
    assert world.ask(ExpireMember(G, "nobody")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.ask(ExpireMember(G, "a")) is ErrorCode.NONE
    world.advance()
    assert list(world.group().members) == ["b"]
    assert world.heartbeat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.heartbeat("b", 3)
    assert sorted(world.member("b").assigned[FOO]) == [0, 1, 2, 3, 4, 5]


def test_a_static_member_that_is_fenced(world: World) -> None:
    world.join("a", "foo", instance_id="i")
    assert world.ask(FenceMember(G, "other")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.ask(FenceMember(G, "i")) is ErrorCode.NONE
    (away,) = world.group().members.values()
    assert (away.epoch, away.state, sorted(away.assigned[FOO])) == (
        GOES_AWAY,
        MemberState.STABLE,
        [0, 1, 2, 3, 4, 5],
    )
    fenced = world.heartbeat("a", 2, instance_id="i")
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    world.join("b", "foo", instance_id="i")
    assert list(world.group().members) == ["b"]
    assert sorted(world.member("b").assigned[FOO]) == [0, 1, 2, 3, 4, 5]


def test_a_fenced_member_that_joins_again(world: World) -> None:
    """librdkafka sends the instance id only with its joins: it learns of the fencing in two steps."""
    world.join("a", "foo", instance_id="i")
    world.ask(FenceMember(G, "i"))
    assert world.heartbeat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("a", 0, instance_id="i").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert world.join("b", "foo", instance_id="i").error_code == ErrorCode.NONE
    world.heartbeat("b", -2, instance_id="i")
    assert world.join("a", "foo", instance_id="i").error_code == ErrorCode.NONE


def test_nobody_takes_the_place_of_a_fenced_member(world: World) -> None:
    world.join("a", "foo", instance_id="i")
    world.ask(FenceMember(G, "i"))
    world.advance(45_000)
    assert not world.group().members


def test_a_parked_heartbeat_of_a_member_that_is_fenced(world: World) -> None:
    world.join("a", "foo", instance_id="i")
    request = ConsumerGroupHeartbeatRequest(group_id=G, member_id="a", member_epoch=2, instance_id="i")
    caller = Caller(100, 1, "client", "/host")
    parked = MemberHeartbeat(request, patience=Patience.LONG)
    assert not world.coordinator.handle(caller, parked, world.now_ms).replies
    decision = world.coordinator.handle(Caller(101), FenceMember(G, "i"), world.now_ms)
    answers = {reply.token: reply.response for reply in decision.replies}
    assert answers[100].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert "fenced by member" in answers[100].error_message
    assert answers[101] is ErrorCode.NONE
