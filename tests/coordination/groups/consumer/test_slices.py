"""Targets of large groups: computed in slices, while the group goes on; and told to many members."""

from __future__ import annotations

import random
from collections.abc import Iterator
from uuid import UUID

import pytest

from kshim.coordination.groups.consumer import computing, releasing
from kshim.coordination.groups.consumer.assignors.spec import GroupSpec, MemberSpec
from kshim.coordination.groups.consumer.assignors.table import ASSIGNORS
from kshim.coordination.groups.consumer.requests import Patience
from kshim.coordination.groups.consumer.states import GroupState
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from tests.coordination.groups.consumer.patient import Patient
from tests.coordination.groups.consumer.world import BAR, FOO, World, owned, shown

EVERYTHING = {(FOO, partition) for partition in range(6)} | {(BAR, partition) for partition in range(3)}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a computation is a slice, and one member is looked at a time."""
    monkeypatch.setattr(computing, "MOST_STEPS", 1)
    monkeypatch.setattr(releasing, "MOST_WORK", 1)


def go_on(world: World, slices: int) -> Iterator[None]:
    """Do some slices of what is due, one for each item."""
    decisions = world.coordinator.advance(world.now_ms)
    for _ in range(slices):
        world._note(next(decisions))
        yield


def targets(world: World) -> list[tuple[UUID, int]]:
    """All partitions in the target, sorted."""
    found = world.group().targets.values()
    return sorted((topic, each) for target in found for topic, those in target.items() for each in those)


@pytest.mark.usefixtures("slow")
def test_the_old_target_stays_until_the_new_one_is_computed() -> None:
    world = World()
    world.join("a", "foo", "bar")
    world.advance()
    assert shown(world.heartbeat("a", 1)) == {FOO: set(range(6)), BAR: {0, 1, 2}}
    before = world.group().targets["a"]
    answer = world.join("b", "foo", "bar")
    assert (answer.member_epoch, shown(answer)) == (2, {})
    for _ in go_on(world, 5):
        assert world.records == ()
        assert (world.group().state, world.group().assignment_epoch) == (GroupState.ASSIGNING, 2)
        assert world.group().targets == {"a": before}
        assert world.heartbeat("a", 2).assignment is None
    world.advance()
    assert [type(key) for key, _ in world.records] == [
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
    ]
    assert world.group().assignment_epoch == 3
    assert targets(world) == sorted(EVERYTHING)


@pytest.mark.usefixtures("slow")
def test_a_member_leaves_and_another_joins_meanwhile() -> None:
    world = World()
    for member_id in "abc":
        world.join(member_id, "foo", "bar")
    for _ in go_on(world, 5):
        pass
    epoch = world.group().epoch
    world.heartbeat("b", -1)
    world.join("d", "foo")
    assert world.group().epoch == epoch + 2
    world.advance()
    group = world.group()
    assert group.assignment_epoch == group.epoch == epoch + 2
    assert targets(world) == sorted(EVERYTHING)
    assert set(group.targets) == {"a", "c", "d"}
    assert set(group.targets["d"]) == {FOO}


@pytest.mark.usefixtures("slow")
def test_a_member_that_comes_meanwhile_gets_nothing_of_a_target_without_it() -> None:
    world = World()
    world.join("a", "foo")
    for _ in go_on(world, 2):
        pass
    world.join("b", "foo")
    epochs = []
    for decision in world.coordinator.advance(world.now_ms):
        world._note(decision)
        if world.records:
            epochs.append((world.group().assignment_epoch, set(world.group().targets)))
    assert epochs == [(2, {"a"}), (3, {"a", "b"})]


@pytest.mark.usefixtures("slow")
def test_the_successor_of_a_static_member_meanwhile() -> None:
    """What it takes over is in the target of nobody else."""
    world = World()
    world.join("a", "foo", instance_id="i")
    world.join("b", "foo")
    world.advance()
    world.heartbeat("a", -2, instance_id="i")
    world.join("c", "foo")
    for _ in go_on(world, 5):
        pass
    world.join("d", "foo", instance_id="i")
    world.advance()
    assert targets(world) == [(FOO, partition) for partition in range(6)]
    assert world.group().assignment_epoch == world.group().epoch


@pytest.mark.usefixtures("slow")
def test_a_group_is_emptied_meanwhile() -> None:
    world = World()
    world.join("a", "foo")
    for _ in go_on(world, 2):
        pass
    world.heartbeat("a", -1)
    assert world.group().state is GroupState.EMPTY
    epoch = world.group().epoch
    world.join("b", "foo")
    world.advance()
    written = world.written(ConsumerGroupTargetAssignmentMetadataKey)
    assert [each.assignment_epoch for each in written] == [epoch + 1]  # type: ignore[union-attr]
    assert set(world.group().targets) == {"b"}


@pytest.mark.usefixtures("slow")
def test_a_restart_meanwhile() -> None:
    world = World()
    world.join("a", "foo")
    world.reload()
    world.advance()
    assert shown(world.heartbeat("a", 1)) == {FOO: set(range(6))}


@pytest.mark.usefixtures("slow")
def test_a_member_that_joins_waits_for_its_target() -> None:
    world = Patient()
    world.enter("a", "foo")
    assert world.answers == {}
    world.advance()
    assert shown(world.answers[1]) == {FOO: set(range(6))}


@pytest.mark.usefixtures("slow")
def test_many_members_hear_of_a_target_one_after_the_other() -> None:
    world = Patient()
    members = [f"m{number}" for number in range(6)]
    for member_id in members:
        world.beat(member_id, 0, Patience.NONE, subscribed_topic_names=("foo",), topic_partitions=())
        world.advance()
    for member_id in members:
        while world.group().members[member_id].epoch != world.group().epoch:
            token = world.beat(member_id, world.member(member_id).epoch, Patience.NONE, topic_partitions=())
            world.advance()
            assert token in world.answers
    for member_id in members:
        has = list(world.member(member_id).assigned.get(FOO, {}))
        token = world.beat(
            member_id, world.group().epoch, Patience.NONE, topic_partitions=owned(foo=has) if has else ()
        )
    waiting = {world.beat(member_id, world.group().epoch) for member_id in members}
    assert waiting.isdisjoint(world.answers)
    world.create("foo", 12)
    answered = []
    for decision in world.coordinator.advance(world.now_ms):
        world._note(decision)
        answered.append(len(decision.replies))
    assert waiting <= world.answers.keys()
    assert [count for count in answered if count] == [1] * len(members)


@pytest.mark.parametrize("is_homogeneous", [True, False])
@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_no_step_of_an_assignor_is_long(assignor: str, is_homogeneous: bool) -> None:
    """The steps between two rests number about the members of the group, or the partitions of a topic."""
    chance = random.Random(7)
    topics = [UUID(int=chance.getrandbits(128)) for _ in range(60)]
    members = {
        f"m{number}": MemberSpec(frozenset(topics if is_homogeneous else chance.sample(topics, 40)))
        for number in range(50)
    }
    group = GroupSpec(members, dict.fromkeys(topics, 4), is_homogeneous)
    steps = list(ASSIGNORS[assignor](group))
    assert max(steps) <= 60
    assert sum(steps) >= 240  # the partitions
