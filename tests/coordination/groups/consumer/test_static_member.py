"""Members with an instance id; cases 51 to 63."""

from __future__ import annotations

from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.timers import TimerKind
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import ConsumerGroupCurrentMemberAssignmentKey
from tests.coordination.groups.consumer.world import (
    BAR,
    FOO,
    Given,
    World,
    error_of,
    held,
    key_of,
    owned,
    shown,
    stable,
    target,
)


def two(**settings: int) -> World:
    """Member a, and the static member b with the instance id i."""
    a = stable("a", assigned=held(10, foo=(0, 1, 2), bar=(0, 1)))
    b = stable("b", assigned=held(10, foo=(3, 4, 5), bar=(2,)), instance_id="i")
    members = [(a, target(foo=(0, 1, 2), bar=(0, 1))), (b, target(foo=(3, 4, 5), bar=(2,)))]
    return World(Given(10, members), **settings)


def test_51_a_new_static_member_is_a_new_epoch() -> None:
    world = two()
    answer = world.join("c", "foo", "bar", instance_id="j")
    assert world.kinds() == [5, 3, 7, 7, 7, 6, 8]
    assert (answer.member_epoch, world.group().static_members) == (11, {"i": "b", "j": "c"})


def test_52_it_gets_back_what_it_had() -> None:
    world = two()
    answer = world.heartbeat("b", -2, instance_id="i")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("b", -2, 0)
    assert world.kinds() == [8]
    assert world.group().state is GroupState.RECONCILING
    answer = world.join("c", "foo", "bar", instance_id="i", rebalance_timeout_ms=6_000)
    assert [key_of(key) for key, _ in world.records] == [
        *((kind, "b") for kind in (8, 7, 5)),
        *((kind, "c") for kind in (5, 7, 8, 5, 8)),
    ]
    copied, reached = world.written(ConsumerGroupCurrentMemberAssignmentKey)[1:]
    assert copied.member_epoch == 0  # type: ignore[union-attr]
    assert (reached.member_epoch, reached.previous_member_epoch) == (10, 0)  # type: ignore[union-attr]
    assert (answer.member_epoch, shown(answer)) == (10, {FOO: {3, 4, 5}, BAR: {2}})
    assert (world.group().epoch, world.group().state) == (10, GroupState.STABLE)


def test_53_it_comes_back_with_another_subscription() -> None:
    a = stable("a", names=("foo",), assigned=held(10, foo=range(6)), instance_id="i", epoch=-2)
    world = World(Given(10, [(a, target(foo=range(6)))]))
    answer = world.join("b", "foo", "bar", instance_id="i")
    assert (answer.member_epoch, shown(answer)) == (11, {FOO: set(range(6)), BAR: {0, 1, 2}})


def test_54_no_epoch_when_it_goes_away() -> None:
    alone = stable("a", names=("foo",), instance_id="i")
    world = World(Given(10, [(alone, {})]))
    world.heartbeat("a", -2, instance_id="i")
    assert (world.kinds(), world.group().epoch) == ([8], 10)


def test_54_partitions_that_it_was_to_give_up_are_free() -> None:
    a = stable("a", names=("foo",), revoking=held(10, foo=(1,)), assigned=held(10, foo=(0,)), instance_id="i")
    world = World(Given(10, [(a, {})]))
    world.heartbeat("a", -2, instance_id="i")
    assert (world.member("a").revoking, world.member("a").epoch) == ({}, -2)
    assert world.group().partition_epochs.of(FOO, 1) == -1
    assert world.group().partition_epochs.of(FOO, 0) == -2


def test_55_it_leaves() -> None:
    world = two()
    before = world.group().metadata_hash
    assert world.heartbeat("b", -1, instance_id="i").member_epoch == -1
    assert (world.kinds(), world.group().epoch) == ([-8, -7, -5, 3], 11)
    assert (world.group().metadata_hash, world.group().static_members) == (before, {})


def test_56_the_instance_id_is_in_use() -> None:
    world = two()
    message = "Static member c with instance id i cannot join the group because the instance id is owned by b"
    assert error_of(world.join("c", "foo", instance_id="i")) == (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        f"{message} member.",
    )
    assert world.records == ()


def test_57_60_an_unknown_instance_id() -> None:
    for epoch in (1, -1, -2):
        answer = two().heartbeat("c", epoch, instance_id="j")
        assert error_of(answer) == (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id j is unknown.")


def test_58_60_an_instance_id_of_another_member() -> None:
    message = "Static member c with instance id i was fenced by member b."
    for epoch in (1, -1, -2):
        answer = two().heartbeat("c", epoch, instance_id="i")
        assert error_of(answer) == (ErrorCode.FENCED_INSTANCE_ID, message)


def test_59_epochs_of_a_static_member() -> None:
    world = two()
    for epoch in (200, 5, 9):
        assert world.heartbeat("b", epoch, instance_id="i").error_code == ErrorCode.FENCED_MEMBER_EPOCH
    answer = world.heartbeat("b", 9, instance_id="i", topic_partitions=owned(foo=(4,)))
    assert (answer.error_code, answer.member_epoch) == (0, 10)


def test_61_it_does_not_come_back_in_time() -> None:
    world = two()
    world.heartbeat("b", -2, instance_id="i")
    world.advance(44_999)
    world.heartbeat("a", 10)
    world.advance(1)
    assert world.kinds()[:4] == [-8, -7, -5, 3]
    assert "b" not in world.group().members
    assert world.group().epoch == 11


def test_62_the_same_member_joins_again() -> None:
    """Apache Kafka refuses it with UNRELEASED_INSTANCE_ID, which its clients take for a fatal error."""
    world = two()
    answer = world.join("b", "foo", "bar", instance_id="i")
    assert (answer.error_code, answer.member_epoch) == (0, 10)
    assert shown(answer) == {FOO: {3, 4, 5}, BAR: {2}}
    assert world.records == ()


def test_63_a_member_gets_another_instance_id() -> None:
    """The old one is free (KAFKA-20747)."""
    world = two()
    world.join("a", "foo", "bar", instance_id="k")
    assert world.group().static_members == {"i": "b", "k": "a"}
    world.join("a", "foo", "bar", instance_id="l")
    assert world.group().static_members == {"i": "b", "l": "a"}
    world.heartbeat("a", -1)
    assert world.group().static_members == {"i": "b"}
    assert world.due_in(TimerKind.SESSION, "a") is None
