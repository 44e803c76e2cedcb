"""Members join, stay, and leave; cases 12 to 50."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kshim.coordination.decision import GroupRecord
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.timers import TimerKind
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from schemas.messages.consumer_group_heartbeat import TopicPartitions
from tests.coordination.groups.consumer.world import (
    BAR,
    FOO,
    G,
    Given,
    World,
    error_of,
    held,
    owned,
    shown,
    stable,
    target,
)

UNREVOKED, UNRELEASED = MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
GREATER = (
    "The consumer group member has a greater member epoch ({}) than the one known by the group coordinator "
    "({}). The member must abandon all its partitions and rejoin."
)
SMALLER = GREATER.replace("greater", "smaller")


def alone(epoch: int = 100, **fields: object) -> World:
    """A group with one member, `m`, which has foo 0 to 2 and what `fields` say."""
    member = stable("m", epoch, ("foo",), held(epoch, foo=(0, 1, 2)), previous_epoch=epoch - 1)
    member = replace(member, **fields)  # type: ignore[arg-type]
    world = World()
    world.topics.put("foo", 3)
    given = Given(epoch, [(member, target(foo=(0, 1, 2)))])
    world.journal = list(given.records(G, world.topics))
    world.reload()
    return world


def two(**third: object) -> World:
    """Members a (foo 0 to 2, bar 0 and 1) and b (the rest) at epoch 10."""
    a = stable("a", assigned=held(10, foo=(0, 1, 2), bar=(0, 1)))
    b = stable("b", assigned=held(10, foo=(3, 4, 5), bar=(2,)))
    members = [(a, target(foo=(0, 1, 2), bar=(0, 1))), (b, target(foo=(3, 4, 5), bar=(2,)))]
    return World(Given(10, members), **third)  # type: ignore[arg-type]


class TestEpochs:
    def test_12_an_id_is_made_below_v1(self) -> None:
        world = World()
        answer = world.join("", "nowhere", version=0)
        assert (answer.member_id, answer.member_epoch) == ("id-1", 2)
        assert shown(answer) == {}

    @pytest.mark.parametrize("epoch", [100, 1])
    def test_16_no_group(self, epoch: int) -> None:
        world = World()
        answer = world.heartbeat("m", epoch)
        assert error_of(answer) == (ErrorCode.GROUP_ID_NOT_FOUND, "Consumer group g not found.")
        assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (None, 0, 0)
        assert world.groups() == {}

    @pytest.mark.parametrize("epoch", [-1, -2])
    def test_16_nothing_to_leave(self, epoch: int) -> None:
        answer = World().heartbeat("m", epoch, instance_id="i")
        assert error_of(answer) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")

    def test_17_no_member(self) -> None:
        world = alone()
        unknown = (ErrorCode.UNKNOWN_MEMBER_ID, "Member n is not a member of group g.")
        assert error_of(world.heartbeat("n", 1)) == unknown
        assert error_of(world.heartbeat("n", -1)) == unknown

    def test_18_other_epochs(self) -> None:
        world = alone()
        fenced = ErrorCode.FENCED_MEMBER_EPOCH
        assert error_of(world.heartbeat("m", 200)) == (fenced, GREATER.format(200, 100))
        assert error_of(world.heartbeat("m", 50)) == (fenced, SMALLER.format(50, 100))
        assert error_of(world.heartbeat("m", 99)) == (fenced, SMALLER.format(99, 100))
        answer = world.heartbeat("m", 99, topic_partitions=owned(foo=(1, 2)))
        assert (answer.error_code, answer.member_epoch) == (0, 100)

    def test_19_the_epoch_before_with_other_partitions(self) -> None:
        world = alone()
        answer = world.heartbeat("m", 99, topic_partitions=owned(foo=(1, 4)))
        assert answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert world.heartbeat("m", 99, topic_partitions=()).error_code == 0

    def test_20_a_member_joins_again(self) -> None:
        world = alone()
        answer = world.join("m", "foo")
        assert (answer.member_epoch, shown(answer)) == (100, {FOO: {0, 1, 2}})
        assert world.group().epoch == 100

    def test_21_while_it_is_to_give_up_partitions(self) -> None:
        world = alone(state=UNREVOKED, assigned=held(100, foo=(0, 1)), revoking=held(100, foo=(2,)))
        world.journal = list(Given(101, [(world.member("m"), target(foo=(0, 1)))]).records(G, world.topics))
        world.reload()
        answer = world.join("m", "foo")
        assert (answer.member_epoch, shown(answer)) == (101, {FOO: {0, 1}})
        assert world.member("m").state is MemberState.STABLE

    def test_22_while_it_waits(self) -> None:
        world = alone(state=UNRELEASED, assigned=held(100, foo=(0,)))
        answer = world.join("m", "foo")
        assert (answer.member_epoch, shown(answer)) == (100, {FOO: {0, 1, 2}})


class TestRepeats:
    def test_23_a_full_heartbeat(self) -> None:
        world = alone()
        full = {
            "rebalance_timeout_ms": 5_000,
            "subscribed_topic_names": ("foo",),
            "topic_partitions": owned(foo=(0, 1, 2)),
        }
        first = world.heartbeat("m", 100, **full)
        assert world.heartbeat("m", 100, **full) == first
        assert shown(first) == {FOO: {0, 1, 2}}
        assert world.records == ()

    def test_24_while_it_is_to_give_up_partitions(self) -> None:
        world = alone(state=UNREVOKED, assigned=held(100, foo=(0, 1)), revoking=held(100, foo=(2,)))
        for _ in range(2):
            answer = world.heartbeat(
                "m",
                100,
                rebalance_timeout_ms=5_000,
                subscribed_topic_names=("foo",),
                topic_partitions=owned(foo=(0, 1, 2)),
            )
            assert (answer.member_epoch, shown(answer)) == (100, {FOO: {0, 1}})
            assert world.records == ()
        assert world.member("m").state is UNREVOKED

    def test_25_while_it_waits(self) -> None:
        waits = stable("m", 100, ("foo",), held(100, foo=(0,)), state=UNRELEASED)
        other = stable("n", 100, ("foo",), {}, revoking=held(99, foo=(1, 2)), state=UNREVOKED)
        world = World(Given(100, [(waits, target(foo=(0, 1, 2))), (other, {})]))
        answers = [
            world.heartbeat(
                "m",
                100,
                rebalance_timeout_ms=5_000,
                subscribed_topic_names=("foo",),
                topic_partitions=owned(foo=(0,)),
            )
            for _ in range(2)
        ]
        assert answers[0] == answers[1]
        assert shown(answers[0]) == {FOO: {0}}
        assert world.records == ()

    def test_26_an_acknowledgement(self) -> None:
        member = stable(
            "m", 100, ("foo",), held(100, foo=(0, 1)), revoking=held(100, foo=(2,)), state=UNREVOKED
        )
        world = World(Given(101, [(member, target(foo=(0, 1)))]))
        acknowledge = {
            "rebalance_timeout_ms": 5_000,
            "subscribed_topic_names": ("foo",),
            "topic_partitions": owned(foo=(0, 1)),
        }
        first = world.heartbeat("m", 100, **acknowledge)
        assert (first.member_epoch, shown(first)) == (101, {FOO: {0, 1}})
        assert world.member("m").state is MemberState.STABLE
        assert world.heartbeat("m", 100, **acknowledge) == first
        assert world.records == ()


class TestGroups:
    def test_27_the_first_member(self) -> None:
        world = World()
        answer = world.join("m", "foo", "bar")
        assert world.kinds() == [5, 3, 7, 6, 8]
        assert (answer.member_epoch, answer.heartbeat_interval_ms) == (2, 5_000)
        assert shown(answer) == {FOO: set(range(6)), BAR: {0, 1, 2}}
        assert world.group().state is GroupState.STABLE

    def test_14_an_empty_subscription(self) -> None:
        """The group epoch of a new group does not grow for it (KIP-1263)."""
        for regex, names in (("", ()), (None, ())):
            world = World()
            answer = world.join("m", *names, subscribed_topic_regex=regex)
            assert (answer.error_code, answer.member_epoch) == (0, 1)
            assert world.kinds() == [5, 8]

    def test_28_another_subscription(self) -> None:
        world = World(Given(10, [(stable("m", 10, ("foo",), held(10, foo=range(6))), target(foo=range(6)))]))
        answer = world.heartbeat("m", 10, subscribed_topic_names=("foo", "bar"))
        assert world.kinds() == [5, 3, 7, 6, 8]
        assert (answer.member_epoch, shown(answer)) == (11, {FOO: set(range(6)), BAR: {0, 1, 2}})

    def test_29_one_more_member(self) -> None:
        world = two()
        answer = world.join("c", "foo", "bar")
        assert (answer.member_epoch, shown(answer)) == (11, {})
        assert world.kinds() == [5, 3, 7, 7, 7, 6, 8]
        assert world.member("c").state is UNRELEASED
        assert sorted(world.group().targets) == ["a", "b", "c"]

    def test_30_a_member_leaves(self) -> None:
        world = two()
        answer = world.heartbeat("b", -1)
        assert world.kinds() == [-8, -7, -5, 3]
        assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("b", -1, 0)
        assert shown(answer) is None
        assert (world.group().epoch, world.group().state) == (11, GroupState.ASSIGNING)

    def test_30_then_the_target_is_computed_without_a_heartbeat(self) -> None:
        world = two()
        world.heartbeat("b", -1)
        world.advance()
        assert world.kinds() == [7, 6]
        assert world.group().state is GroupState.RECONCILING

    def test_30_the_hash_no_longer_has_its_topics(self) -> None:
        a, b = stable("a", names=("foo",)), stable("b", names=("bar",))
        world = World(Given(10, [(a, {}), (b, {})]))
        before = world.group().metadata_hash
        world.heartbeat("b", -1)
        assert world.group().metadata_hash not in (before, 0)

    def test_the_last_member_leaves(self) -> None:
        """The target is of the last epoch (KAFKA-20442)."""
        world = alone()
        world.heartbeat("m", -1)
        assert world.kinds() == [-8, -7, -5, 3, 6]
        group = world.group()
        assert (group.epoch, group.assignment_epoch, group.state) == (101, 101, GroupState.EMPTY)
        assert group.metadata_hash == 0
        assert world.coordinator.next_deadline_ms() is not None

    def test_31_when_an_answer_has_an_assignment(self) -> None:
        world = World()
        assert shown(world.join("m", "foo")) is not None
        assert shown(world.heartbeat("m", 2)) is None
        full = {"rebalance_timeout_ms": 5_000, "topic_partitions": owned(foo=range(6))}
        assert shown(world.heartbeat("m", 2, subscribed_topic_names=("foo",), **full)) is not None
        assert shown(world.heartbeat("m", 2, subscribed_topic_regex="", **full)) is not None
        assert shown(world.heartbeat("m", 2, **full)) is None

    def test_32_a_full_group(self) -> None:
        world = two(group_consumer_max_size=2)
        full = (
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            "The consumer group has reached its maximum capacity of 2 members.",
        )
        assert error_of(world.join("c", "foo")) == full
        assert error_of(world.heartbeat("c", 7)) == full
        assert world.heartbeat("a", 10).error_code == 0
        assert world.records == ()

    def test_32_a_static_member_comes_back_to_a_full_group(self) -> None:
        """KAFKA-20601."""
        gone = stable("a", -2, instance_id="i", assigned=held(10, foo=(1,)))
        world = World(Given(10, [(gone, target(foo=(1,)))]), group_consumer_max_size=1)
        assert world.join("n", "foo", "bar", instance_id="i").error_code == 0

    def test_33_34_the_states(self) -> None:
        world = World()
        states = []
        key, value = ConsumerGroupMetadataKey(group=G), ConsumerGroupMetadataValue(epoch=10)
        moving = stable("m", 11, ("foo",), held(11, foo=(1,)), state=UNREVOKED)
        there = replace(moving, state=MemberState.STABLE)
        for given in (
            None,
            Given(11, [(Member("m", epoch=10), {})], assignment_epoch=10),
            Given(11, [(Member("m", epoch=10), {})]),
            Given(11, [(moving, {})]),
            Given(11, [(there, {})]),
        ):
            world.journal = (
                [GroupRecord(key, value)] if given is None else list(given.records(G, world.topics))
            )
            world.reload()
            states.append(world.group().state)
        assert states == ["Empty", "Assigning", "Reconciling", "Reconciling", "Stable"]
        world.journal.append(GroupRecord(key, replace(value, epoch=12)))
        world.reload()
        assert world.group().state is GroupState.ASSIGNING

    def test_36_three_members_agree(self) -> None:
        world = two()
        c = world.join("c", "foo", "bar")
        assert (c.member_epoch, shown(c)) == (11, {})
        targets = world.group().targets
        a = world.heartbeat("a", 10)
        kept = {topic: set(those) for topic, those in targets["a"].items()}
        assert (a.member_epoch, shown(a)) == (10, kept)
        assert world.member("a").state is UNREVOKED
        b = world.heartbeat("b", 10)
        assert (b.member_epoch, world.member("b").state) == (10, UNREVOKED)
        assert shown(world.heartbeat("c", 11)) is None
        assert world.kinds() == [8]
        assert world.member("c").previous_epoch == 11
        a = world.heartbeat("a", 10, topic_partitions=_owning(kept))
        assert (a.member_epoch, shown(a), world.member("a").state) == (11, None, MemberState.STABLE)
        assert shown(world.heartbeat("b", 10)) is None
        assert world.records == ()
        c = world.heartbeat("c", 11)
        assert world.member("c").state is UNRELEASED
        assert shown(c)
        assert shown(world.heartbeat("c", 11)) is None
        b = world.heartbeat("b", 10, topic_partitions=_owning(shown(b)))
        assert (b.member_epoch, world.member("b").state) == (11, MemberState.STABLE)
        assert world.group().state is GroupState.RECONCILING
        c = world.heartbeat("c", 11)
        assert shown(c) == {topic: set(those) for topic, those in targets["c"].items()}
        assert world.group().state is GroupState.STABLE

    def test_39_settings_of_a_group(self) -> None:
        world = World()
        assert world.join("m", "foo").heartbeat_interval_ms == 5_000
        assert world.due_in(TimerKind.SESSION, "m") == 45_000
        world.configs.interval_ms, world.configs.session_ms = 10_000, 50_000
        assert world.heartbeat("m", 2).heartbeat_interval_ms == 10_000
        assert world.due_in(TimerKind.SESSION, "m") == 50_000
        world.heartbeat("m", -1)
        assert world.due_in(TimerKind.SESSION, "m") is None

    def test_41_the_assignor_that_most_members_ask_for(self) -> None:
        """A new majority is a new epoch (KAFKA-20434)."""
        world = World()
        world.join("a", "foo", server_assignor="range")
        votes = world.group().subscriptions
        assert votes.preferred_assignor(("uniform", "range")) == "range"
        world.join("b", "foo", server_assignor="uniform")
        assert votes.preferred_assignor(("uniform", "range")) == "uniform"
        epoch = world.group().epoch
        world.heartbeat("b", epoch, server_assignor="range")
        assert world.group().epoch == epoch + 1
        assert votes.assignors == {"range": 2}
        world.heartbeat("b", epoch + 1, server_assignor="range")
        assert world.group().epoch == epoch + 1

    def test_a_target_may_have_to_wait(self) -> None:
        """`group.consumer.assignment.interval.ms` (KIP-1263): a target comes no sooner after the last one."""
        world = World()
        world.configs.assignment_ms = 1_000
        world.join("a", "foo")
        world.advance(400)
        answer = world.join("b", "foo")
        assert (answer.member_epoch, shown(answer)) == (2, {})
        assert world.group().state is GroupState.ASSIGNING
        world.advance(599)
        assert world.records == ()
        world.advance(1)
        assert world.kinds() == [7, 7, 6]


class TestTopics:
    def test_44_they_are_looked_at_after_a_load(self) -> None:
        world = World()
        world.topics.put("foo", 3)
        world.join("m", "foo")
        world.topics.put("foo", 6)
        world.reload()
        answer = world.heartbeat("m", 2)
        assert world.kinds() == [3, 7, 6, 8]
        assert (answer.member_epoch, shown(answer)) == (3, {FOO: set(range(6))})
        assert world.group().refresh_at == (world.now_ms + 2**31 - 1, 3)

    def test_46_a_change_is_noticed_by_those_who_subscribe(self) -> None:
        world = World()
        world.join("m", "foo")
        world.join("n", "bar", group_id="other")
        world.topics.put("foo", 7)
        world.heartbeat("m", 2)
        assert world.records == ()
        world.coordinator.topic_changed("foo", "has 7 partitions", world.now_ms)
        world.advance()
        assert world.kinds() == [3, 7, 6]
        assert world.groups()["other"].epoch == 2
        assert shown(world.heartbeat("m", 2)) == {FOO: set(range(7))}

    def test_46_nothing_happens_when_nothing_has_changed(self) -> None:
        world = World()
        world.join("m", "foo")
        world.coordinator.topic_changed("foo", "is the same", world.now_ms)
        world.advance()
        assert world.records == ()

    def test_46_a_topic_that_is_created_later(self) -> None:
        world = World()
        assert shown(world.join("m", "zar")) == {}
        world.topics.put("zar", 1)
        world.coordinator.topic_changed("zar", "is created", world.now_ms)
        world.advance()
        assert shown(world.heartbeat("m", 2)) is not None

    def test_47_racks_count(self) -> None:
        world = World()
        world.join("m", "foo")
        world.topics.put("foo", 6, racks=(("r1",),) * 6)
        world.group().refresh_at = None
        world.heartbeat("m", 2)
        assert world.group().epoch == 3

    def test_48_the_record_of_before_kafka_4_1_is_deleted(self) -> None:
        world = alone()
        key = ConsumerGroupPartitionMetadataKey(group=G)
        world.journal.append(GroupRecord(key, ConsumerGroupPartitionMetadataValue()))
        world.journal.append(
            GroupRecord(ConsumerGroupMetadataKey(group=G), ConsumerGroupMetadataValue(epoch=100))
        )
        world.reload()
        assert world.group().has_old_metadata
        world.heartbeat("m", 100)
        assert world.kinds() == [3, -4, 6, 8]
        assert not world.group().has_old_metadata

    def test_49_topics_that_do_not_exist_do_not_count(self) -> None:
        world = World()
        world.join("m", "foo")
        one = world.group().metadata_hash
        world.heartbeat("m", 2, subscribed_topic_names=("foo", "nowhere"))
        assert world.group().metadata_hash == one
        assert world.group().epoch == 3

    def test_50_when_topics_are_looked_at_again(self) -> None:
        world = World()
        world.join("m", "foo")
        group, now_ms = world.group(), world.now_ms
        group.refresh_at = None
        assert group.needs_refresh(now_ms)
        group.refresh_at = (now_ms + 1_000, 0)
        assert not group.needs_refresh(now_ms + 999)
        assert group.needs_refresh(now_ms + 1_000)
        group.refresh_at = (now_ms + 1_000, group.epoch + 1)
        assert group.needs_refresh(now_ms)


def _owning(partitions: object) -> object:
    assert isinstance(partitions, dict)
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=tuple(those)) for topic_id, those in partitions.items()
    )
