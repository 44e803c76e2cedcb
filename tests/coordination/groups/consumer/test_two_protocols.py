"""Requests of classic members and administrators to consumer groups; cases 122, 123, 130, 149, 151
and 154.
"""

from __future__ import annotations

import pytest

from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.timers import TimerKind
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import ClassicMemberMetadata
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.sync_group import SyncGroupRequest
from tests.coordination.groups.consumer.world import (
    G,
    Given,
    World,
    error_of,
    held,
    key_of,
    stable,
    target,
)

UNKNOWN, FENCED = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID


def three() -> World:
    """Members a, b and the static member c with the instance id i."""
    members = [stable(each, names=("foo",), assigned=held(10, foo=(n,))) for n, each in enumerate("ab")]
    members.append(stable("c", names=("bar",), instance_id="i"))
    return World(Given(10, [(each, {}) for each in members]))


def join(world: World, member_id: str = "", version: int = 9) -> ErrorCode:
    request = JoinGroupRequest(
        group_id=G,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff"),),
    )
    answer = world.ask(request, version)
    return ErrorCode.NONE if answer is None else ErrorCode(answer.error_code)


def leave(world: World, *identities: tuple[str, str | None]) -> list[ErrorCode]:
    members = tuple(
        MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        for member_id, instance_id in identities
    )
    answer = world.ask(LeaveGroupRequest(group_id=G, members=members), 5)
    assert answer.error_code == 0
    return [ErrorCode(each.error_code) for each in answer.members]


class TestLeaveGroup:
    def test_154_members_are_removed_in_one_step(self) -> None:
        world = three()
        entries = [("a", None), ("", "i"), ("n", None), ("a", "j"), ("b", "i")]
        assert leave(world, *entries) == [ErrorCode.NONE, ErrorCode.NONE, UNKNOWN, UNKNOWN, FENCED]
        assert [key_of(key) for key, _ in world.records] == [
            *((kind, "a") for kind in (8, 7, 5)),
            *((kind, "c") for kind in (8, 7, 5)),
            (3, ""),
        ]
        assert list(world.group().members) == ["b"]

    def test_154_a_member_is_named_twice(self) -> None:
        world = three()
        assert leave(world, ("c", "i"), ("", "i")) == [ErrorCode.NONE, ErrorCode.NONE]
        assert world.group().epoch == 11

    def test_154_nobody_is_found(self) -> None:
        world = three()
        assert leave(world, ("n", None), ("", "j"), ("", None)) == [UNKNOWN] * 3
        assert world.records == ()

    def test_154_below_v3_a_request_names_one_member(self) -> None:
        world = three()
        assert world.ask(LeaveGroupRequest(group_id=G, member_id="a"), 2).error_code == 0
        assert world.ask(LeaveGroupRequest(group_id=G, member_id="a"), 2).error_code == UNKNOWN

    def test_119_expressions_that_nobody_uses_any_more(self) -> None:
        world = World()
        world.join("a", subscribed_topic_regex="fo+")
        world.advance()
        leave(world, ("a", None))
        assert -16 in world.kinds()


class TestOtherRequests:
    def test_149_sync_group_and_heartbeat_of_a_consumer_member(self) -> None:
        world = three()
        sync = SyncGroupRequest(group_id=G, generation_id=10, member_id="a")
        assert world.ask(sync, 5).error_code == UNKNOWN
        beat = HeartbeatRequest(group_id=G, generation_id=10, member_id="a")
        assert world.ask(beat, 4).error_code == UNKNOWN

    @pytest.mark.parametrize("version", [3, 9])
    def test_130_an_empty_group_gives_way(self, version: int) -> None:
        world = World(Given(10))
        assert join(world, version=version) in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
        assert world.kinds() == [-6, -4, -3, 2]
        assert (world.groups(), list(world.coordinator._shards[0].groups)) == ({}, [G])
        world.reload()
        assert world.groups() == {}

    def test_130_not_for_a_join_that_is_refused(self) -> None:
        """Apache Kafka deletes the group from its memory."""
        world = World(Given(10))
        assert join(world, "m") == UNKNOWN
        assert (world.records, list(world.groups())) == ((), [G])


class TestClassicGroups:
    def test_122_heartbeats_of_members_that_do_not_join(self) -> None:
        world = World()
        join(world, version=3)
        assert error_of(world.heartbeat("m", 5))[1] == "Group g is not a consumer group."
        assert error_of(world.heartbeat("m", -1))[1] == "Group g is not a consumer group."
        assert world.groups() == {}

    def test_123_an_empty_group_gives_way_with_its_pending_ids(self) -> None:
        world = World()
        assert join(world) == ErrorCode.MEMBER_ID_REQUIRED
        assert world.join("m", "foo").error_code == 0
        assert world.kinds() == [-2, 5, 3, 7, 6, 8]
        world.advance(11_000)
        assert list(world.group().members) == ["m"]
        assert world.group().targets == {"m": target(foo=range(6))}


def test_151_a_rebalance_is_under_way() -> None:
    """One member is behind, one has to give up partitions, and one may take some that are free."""
    classic = ClassicMemberMetadata(session_timeout_ms=10_000)
    unrevoked = {"revoking": held(10, foo=(2,)), "state": MemberState.UNREVOKED_PARTITIONS}
    members = [
        (stable("behind", 9, ("foo",), classic=classic), {}),
        (stable("unrevoked", 10, ("foo",), held(10, foo=(1,)), classic=classic, **unrevoked), {}),
        (
            stable("unreleased", 10, ("foo",), classic=classic, state=MemberState.UNRELEASED_PARTITIONS),
            target(foo=(3,)),
        ),
    ]
    world = World(Given(10, members))
    world.advance(1_000)
    for member, _ in members:
        name = member.member_id
        request = HeartbeatRequest(group_id=G, generation_id=member.epoch, member_id=name)
        assert world.ask(request, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS, name
        assert (world.due_in(TimerKind.SESSION, name), world.due_in(TimerKind.REJOIN, name)) == (
            10_000,
            5_000,
        )
        assert world.records == ()
