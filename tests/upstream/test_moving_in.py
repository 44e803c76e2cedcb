"""Groups that come to kshim, and go and come again: the offsets with which they go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.control.commands import SteeringError
from kshim.upstream.adoption import Adoption
from kshim.upstream.moving_in import FRESH_S
from kshim.upstream.shards.mirrored import FLUSH_S
from kshim.upstream.shards.renewal import RECENT_MS
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import OffsetCommitKey, encode_key, encode_value
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from schemas.registry import decode_response
from tests.api.harness import PENDING, advance, later, result
from tests.upstream.front_world import TOPIC_ID, World, commit
from tests.upstream.kafka_groups import Group

KEY = encode_key(OffsetCommitKey(group="g", topic="t", partition=0))
THERE, LATER_THERE, HERE_OFFSET = 41, 60, 5
LEAVES = -1
"""HERE_OFFSET is that of `commit`."""


@pytest.fixture
def world() -> World:
    world = World(adopts=True)
    world.upstream_topics["t"] = TOPIC_ID
    world.kafka.groups["g"] = Group(offsets={("t", 0): (THERE, 2, "there")})
    return world


def settle(world: World) -> None:
    for _ in range(60):
        advance(world.here)


def ask(world: World, key: ApiKey, version: int, request: Any) -> Any:
    answer = later(world.send(key, version, request))
    settle(world)
    reply = result(answer)
    assert reply is not PENDING
    return decode_response(key, version, bytes(reply))[1]


def join_classic(world: World) -> ErrorCode:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    return ErrorCode(ask(world, ApiKey.JOIN_GROUP, 4, request).error_code)


def join_consumer(world: World) -> ErrorCode:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    return ErrorCode(ask(world, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request).error_code)


def fetch(world: World) -> ErrorCode:
    topics = (OffsetFetchRequestTopics(name="t", topic_id=TOPIC_ID, partition_indexes=(0,)),)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),))
    return ErrorCode(ask(world, ApiKey.OFFSET_FETCH, 9, request).groups[0].error_code)


Come = Callable[[World], ErrorCode]
JOINS: list[Come] = [join_classic, join_consumer]


def offset(world: World) -> int:
    group = world.groups.see("g")
    if group is None or ("t", 0) not in group.committed:
        return -1
    return group.committed["t", 0].offset


@pytest.mark.parametrize("come", [*JOINS, fetch])
def test_a_group_that_comes_goes_on_where_it_was(
    world: World, come: Come, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert come(world) in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
    assert offset(world) == THERE
    group = world.groups.see("g")
    assert group is not None
    value = group.committed["t", 0]
    assert (value.leader_epoch, value.metadata, value.topic_id) == (2, "there", TOPIC_ID)
    line = "group g joins here: it goes on with 1 offsets that it has committed at the upstream"
    assert caplog.messages.count(line) == 1


@pytest.mark.parametrize("come", [*JOINS, fetch])
def test_nothing_is_adopted_where_that_is_switched_off(come: Come) -> None:
    world = World(adopts=False)
    world.upstream_topics["t"] = TOPIC_ID
    world.kafka.groups["g"] = Group(offsets={("t", 0): (THERE, 2, "there")})
    come(world)
    assert offset(world) == -1
    assert not world.kafka.asked(OffsetFetchRequest)


@pytest.mark.parametrize("come", [*JOINS, fetch])
def test_a_group_waits_while_nobody_knows_where_it_was(world: World, come: Come) -> None:
    """It would begin anew otherwise."""
    world.kafka.is_down = True
    assert come(world).retriable
    assert world.groups.see("g") is None
    world.kafka.is_down = False
    world.kafka.error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert come(world).retriable
    world.kafka.error = ErrorCode.NONE
    assert not come(world) or come is join_classic
    assert offset(world) == THERE


def test_a_group_that_is_known_here_waits_for_nobody(world: World) -> None:
    assert commit(world, 9) == ErrorCode.NONE
    world.kafka.is_down = True
    assert join_consumer(world) is ErrorCode.NONE
    assert offset(world) == HERE_OFFSET


@pytest.mark.parametrize("error", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_ID_NOT_FOUND])
def test_a_group_that_the_upstream_hides_or_has_not_begins_anew(world: World, error: ErrorCode) -> None:
    world.kafka.error = error
    assert join_consumer(world) is ErrorCode.NONE
    assert offset(world) == -1


def test_offsets_of_a_topic_that_there_is_not_are_left_out(world: World) -> None:
    world.kafka.groups["g"].offsets["gone", 0] = (7, -1, "")
    assert join_consumer(world) is ErrorCode.NONE
    group = world.groups.see("g")
    assert group is not None
    assert list(group.committed) == [("t", 0)]


def test_many_members_cost_one_question(world: World) -> None:
    for _ in range(3):
        join_classic(world)
    assert len(world.kafka.asked(OffsetFetchRequest)) == 1
    advance(world.here, FRESH_S * 1000)
    join_classic(world)
    assert len(world.kafka.asked(OffsetFetchRequest)) == 2


def leave(world: World) -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=LEAVES)
    assert ask(world, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request).error_code == ErrorCode.NONE


def test_a_group_that_had_members_a_moment_ago_is_compared(world: World) -> None:
    join_consumer(world)
    leave(world)
    copy(world)
    world.kafka.groups["g"].offsets["t", 0] = (LATER_THERE, -1, "")
    join_consumer(world)
    assert offset(world) == LATER_THERE


# ---- out and in again


def copy(world: World) -> None:
    """Have the group's offset copied to the upstream, as the journal does."""
    group = world.groups.see("g")
    assert group is not None
    assert world.mirrored is not None
    world.mirrored.note(0, [(KEY, encode_value(group.committed["t", 0]))])
    advance(world.here, FLUSH_S * 1000)
    settle(world)


def moved_out(world: World) -> None:
    """The group commits here, its offset is copied, and it goes on at the upstream."""
    assert commit(world, 9) == ErrorCode.NONE
    copy(world)
    assert world.kafka.groups["g"].offsets["t", 0][0] == HERE_OFFSET
    advance(world.here, FRESH_S * 1000)


@pytest.mark.parametrize("come", JOINS)
@pytest.mark.parametrize("there", [LATER_THERE, 3])
def test_a_group_that_comes_again_goes_on_where_it_was_last(world: World, come: Come, there: int) -> None:
    """Also behind, if it was reset there."""
    moved_out(world)
    world.kafka.groups["g"].offsets["t", 0] = (there, -1, "")
    come(world)
    assert offset(world) == there


@pytest.mark.parametrize("come", JOINS)
def test_an_offset_that_the_upstream_has_not_got_yet_stays(world: World, come: Come) -> None:
    assert commit(world, 9) == ErrorCode.NONE
    assert world.mirrored is not None
    group = world.groups.see("g")
    assert group is not None
    world.mirrored.note(0, [(KEY, encode_value(group.committed["t", 0]))])
    come(world)
    assert offset(world) == HERE_OFFSET


def test_an_old_offset_that_the_upstream_does_not_take_stays(world: World) -> None:
    assert commit(world, 9) == ErrorCode.NONE
    assert world.mirrored is not None
    world.mirrored._is_stopped = True  # it sends nothing
    group = world.groups.see("g")
    assert group is not None
    world.mirrored.note(0, [(KEY, encode_value(group.committed["t", 0]))])
    advance(world.here, RECENT_MS)
    join_consumer(world)
    assert offset(world) == HERE_OFFSET


def test_a_late_offset_whose_copy_nobody_knows_of_stays(world: World) -> None:
    """The former leader of the shard may not have sent it."""
    assert commit(world, 9) == ErrorCode.NONE
    join_consumer(world)
    assert offset(world) == HERE_OFFSET


def test_an_old_offset_whose_copy_nobody_knows_of_does_not(world: World) -> None:
    assert commit(world, 9) == ErrorCode.NONE
    advance(world.here, RECENT_MS)
    join_consumer(world)
    assert offset(world) == THERE


def test_who_copies_nothing_keeps_what_is_here() -> None:
    world = World(adopts=True, has_twins=False)
    world.upstream_topics["t"] = TOPIC_ID
    world.kafka.groups["g"] = Group(offsets={("t", 0): (THERE, 2, "there")})
    assert commit(world, 9) == ErrorCode.NONE
    advance(world.here, RECENT_MS)
    join_consumer(world)
    assert offset(world) == HERE_OFFSET


def test_a_group_with_members_is_not_compared(world: World) -> None:
    join_consumer(world)
    advance(world.here, FRESH_S * 1000)
    world.kafka.groups["g"].offsets["t", 0] = (LATER_THERE, -1, "")
    join_consumer(world)
    assert offset(world) == THERE


# ---- the command


class Coordinators:
    """kshim's own, where no group has members."""

    async def without_members(self, group_id: str, wanted: str) -> None: ...


def adopt(world: World, pattern: str, *, is_dry_run: bool = False) -> Any:
    coordinators: Any = Coordinators()
    here = {"far": "is coordinated by the kshim at b:9092: adopt it there"}
    theirs = world.front._ports._upstream_groups
    adoption = Adoption(
        *(theirs, coordinators, world.moving_in, lambda: world.kafka.brokers),
        lambda group_id: here.get(group_id, ""),
    )
    adopted = Deferred.fromCoroutine(adoption.adopt_matching(pattern, is_dry_run))
    settle(world)
    return result(adopted)


def test_many_groups_are_adopted_and_shown_before(world: World) -> None:
    world.kafka.groups |= {
        "far": Group(offsets={("t", 0): (1, -1, "")}),
        "used": Group("Stable", offsets={("t", 0): (2, -1, "")}),
        "none": Group(),
        "shared": Group(type="share", offsets={("t", 0): (3, -1, "")}),
    }
    found = adopt(world, ".*", is_dry_run=True)
    assert found["adopted"] == [["g", "t", 0, THERE]]
    assert offset(world) == -1
    assert [group_id for group_id, _ in found["left"]] == ["far", "used"]
    assert found["left"][0][1] == "is coordinated by the kshim at b:9092: adopt it there"
    assert "is Stable at the upstream" in found["left"][1][1]
    assert adopt(world, ".*")["adopted"] == [["g", "t", 0, THERE]]
    assert offset(world) == THERE
    assert adopt(world, "g|n.*") == {"adopted": [], "left": []}, "nothing is left to do"


def test_a_pattern_that_is_none(world: World) -> None:
    with pytest.raises(SteeringError, match="expected a regular expression"):
        adopt(world, "(")


def test_no_offset_is_committed_at_the_upstream_by_all_this(world: World) -> None:
    join_consumer(world)
    adopt(world, ".*")
    assert not world.kafka.asked(OffsetCommitRequest)
