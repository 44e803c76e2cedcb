"""A log of consumer groups is read; cases 48, and 170 to 179."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.coordination.decision import GroupRecord
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.partition_epochs import FREE, StillOwned
from kshim.coordination.groups.consumer.replaying import OutOfOrder, replay
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.records import encode_record
from kshim.coordination.groups.stored_records import StoredRecords
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from schemas.message import MalformedMessage
from tests.coordination.groups.consumer.world import FOO, G, held, target

GROUP = ConsumerGroupMetadataKey(group=G)
TARGET = ConsumerGroupTargetAssignmentMetadataKey(group=G)
MEMBER = ConsumerGroupMemberMetadataKey(group=G, member_id="m")
CURRENT = ConsumerGroupCurrentMemberAssignmentKey(group=G, member_id="m")
TARGET_OF = ConsumerGroupTargetAssignmentMemberKey(group=G, member_id="m")
REGEX = ConsumerGroupRegularExpressionKey(group=G, regular_expression="f.*")
OF_FOO = ConsumerGroupTargetAssignmentMemberValue(
    topic_partitions=(TopicPartition(topic_id=FOO, partitions=(1, 2)),)
)
WHOLE = Member("m", 7, 6, instance_id="i", topic_names=frozenset(("foo",)), assigned=held(5, foo=(1,)))


def read(*records: tuple[Any, Any]) -> HardState:
    state = HardState()
    StoredRecords(state).replay((encode_record(GroupRecord(*record)) for record in records), None)
    return state


def group_of(*records: tuple[Any, Any]) -> ConsumerGroup:
    return read(*records).consumer.groups[G]


def test_170_a_member() -> None:
    group = group_of((MEMBER, WHOLE.to_metadata()))
    member = group.members["m"]
    assert (member.epoch, member.state, member.topic_names) == (0, MemberState.STABLE, {"foo"})
    assert group.static_members == {"i": "m"}


def test_170_its_subscription_is_replaced_whole() -> None:
    group = group_of((MEMBER, WHOLE.to_metadata()), (MEMBER, Member("m").to_metadata()))
    assert group.members["m"].instance_id is None
    assert group.members["m"].topic_names == frozenset()
    assert group.static_members == {}


@pytest.mark.parametrize("key", [GROUP, TARGET, MEMBER, CURRENT, TARGET_OF, REGEX])
def test_170_tombstones_of_what_is_unknown(key: Any) -> None:
    assert read((key, None)).consumer.groups == {}
    other = ConsumerGroupMemberMetadataKey(group=G, member_id="n")
    group = group_of((other, Member("n").to_metadata()), (TARGET, None))
    before = (group.epoch, dict(group.members))
    if key is not GROUP:
        replay(group, key, None)
    assert (group.epoch, group.members) == before


def test_170_a_member_is_deleted_in_order() -> None:
    whole = [(MEMBER, WHOLE.to_metadata()), (TARGET_OF, OF_FOO), (CURRENT, WHOLE.to_current())]
    group = group_of(*whole)
    for key in (MEMBER, CURRENT):
        with pytest.raises(OutOfOrder, match="member m"):
            replay(group, MEMBER, None)
        replay(group, CURRENT, None)
        if key is CURRENT:
            replay(group, TARGET_OF, None)
    replay(group, MEMBER, None)
    assert (group.members, group.targets, group.static_members) == ({}, {}, {})
    assert group.partition_epochs.of(FOO, 1) == FREE


def test_171_the_group_epoch() -> None:
    group = group_of((GROUP, ConsumerGroupMetadataValue(epoch=10, metadata_hash=-3)))
    assert (group.epoch, group.metadata_hash, group.assignment_epoch) == (10, -3, 1)


def test_171_a_group_is_deleted_last() -> None:
    group = group_of((GROUP, ConsumerGroupMetadataValue(epoch=10)))
    with pytest.raises(OutOfOrder, match="has members or a target"):
        replay(group, GROUP, None)
    replay(group, TARGET, None)
    assert replay(group, GROUP, None) is False
    with pytest.raises(MalformedMessage, match="has members or a target"):
        read((GROUP, ConsumerGroupMetadataValue(epoch=10)), (GROUP, None))
    assert (
        read((GROUP, ConsumerGroupMetadataValue(epoch=10)), (TARGET, None), (GROUP, None)).consumer.groups
        == {}
    )


def test_172_the_record_of_before_kafka_4_1() -> None:
    key = ConsumerGroupPartitionMetadataKey(group=G)
    assert group_of((key, ConsumerGroupPartitionMetadataValue())).has_old_metadata
    assert not group_of((key, ConsumerGroupPartitionMetadataValue()), (key, None)).has_old_metadata


def test_173_targets() -> None:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=10, assignment_timestamp=4)
    group = group_of((TARGET_OF, OF_FOO), (TARGET, value))
    assert (group.targets, group.assignment_epoch, group.assigned_ms) == ({"m": target(foo=(1, 2))}, 10, 4)
    with pytest.raises(OutOfOrder, match="before those of its members"):
        replay(group, TARGET, None)
    replay(group, TARGET_OF, None)
    replay(group, TARGET, None)
    assert (group.targets, group.assignment_epoch, group.assigned_ms) == ({}, -1, 0)


def test_174_what_a_member_has() -> None:
    group = group_of((CURRENT, WHOLE.to_current()))
    member = group.members["m"]
    assert (member.epoch, member.previous_epoch, member.assigned) == (7, 6, held(5, foo=(1,)))
    replay(group, CURRENT, None)
    member = group.members["m"]
    assert (member.epoch, member.previous_epoch, member.assigned, member.revoking) == (-1, -1, {}, {})


def test_174_partitions_without_epochs_of_their_own() -> None:
    """Before Kafka 4.3 there were none."""
    old = (TopicPartitions(topic_id=FOO, partitions=(1, 2)),)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7, previous_member_epoch=6, state=9, assigned_partitions=old
    )
    member = group_of((CURRENT, value)).members["m"]
    assert (member.assigned, member.state) == (held(7, foo=(1, 2)), MemberState.UNKNOWN)


def test_175_what_compaction_leaves() -> None:
    a, b = ConsumerGroupCurrentMemberAssignmentKey(group=G, member_id="a"), CURRENT
    one = held(11, foo=(1,))
    group = group_of(
        (a, Member("a", 11, assigned=one).to_current()),
        (b, Member("m", 12, assigned=one).to_current()),
        (a, Member("a", 13, assigned=held(13, foo=(2,))).to_current()),
    )
    assert [group.partition_epochs.of(FOO, each) for each in (1, 2)] == [12, 13]


def test_175_a_log_that_goes_back() -> None:
    first = (CURRENT, Member("m", 12, assigned=held(12, foo=(1,))).to_current())
    other = ConsumerGroupCurrentMemberAssignmentKey(group=G, member_id="a")
    with pytest.raises(MalformedMessage, match="still owned at epoch 12") as caught:
        read(first, (other, Member("a", 12, assigned=held(12, foo=(1,))).to_current()))
    assert isinstance(caught.value.__cause__, StillOwned)


def test_176_expressions() -> None:
    value = ConsumerGroupRegularExpressionValue(topics=("foo", "fob"), version=3, timestamp=5)
    group = group_of((REGEX, value))
    assert group.subscriptions.resolved == {"f.*": (frozenset({"foo", "fob"}), 3, 5)}
    assert "fob" in group.subscriptions
    replay(group, REGEX, None)
    assert "fob" not in group.subscriptions


EMPTY = GroupMetadataValue(protocol_type="", protocol=None, leader=None)
OFFSET = (OffsetCommitKey(group=G, topic="foo", partition=0), OffsetCommitValue(offset=5))


def test_177_a_group_without_members_gives_way() -> None:
    """Its offsets stay."""
    state = read(OFFSET, (GroupMetadataKey(group=G), EMPTY), (MEMBER, WHOLE.to_metadata()))
    assert (state.groups, list(state.consumer.groups)) == ({}, [G])
    assert state.offsets[G]["foo", 0].offset == 5


@pytest.mark.parametrize(
    "classic",
    [
        GroupMetadataValue(protocol_type="consumer", protocol=None, leader=None),
        GroupMetadataValue(protocol_type="", protocol=None, leader=None, members=(MemberMetadata(),)),
    ],
)
def test_177_no_other_group_gives_way(classic: GroupMetadataValue) -> None:
    with pytest.raises(MalformedMessage, match="is a classic group"):
        read((GroupMetadataKey(group=G), classic), (MEMBER, WHOLE.to_metadata()))


def test_177_a_conversion_is_read() -> None:
    """A classic group is deleted before the consumer group in its place begins, and the other way round."""
    key, classic = GroupMetadataKey(group=G), GroupMetadataValue(protocol_type="consumer")
    there = [(key, classic), (key, None), (MEMBER, WHOLE.to_metadata())]
    state = read(*there)
    assert (state.groups, list(state.consumer.groups)) == ({}, [G])
    back = [(CURRENT, None), (TARGET_OF, None), (TARGET, None), (MEMBER, None), (GROUP, None), (key, classic)]
    state = read(*there, *back)
    assert (list(state.groups), state.consumer.groups) == ([G], {})


def test_179_records_of_other_kinds_of_groups_are_skipped() -> None:
    state = HardState()
    keys = [kind.to_bytes(2) + b"\0\1g" for kind in (*range(9, 16), *range(17, 24))]
    assert StoredRecords(state).replay([(key, b"\0\0whatever") for key in keys], None) == keys


def test_a_store_forgets_a_deleted_group() -> None:
    store = ConsumerGroups()
    store.load(MEMBER, WHOLE.to_metadata())
    assert store.subscribed_to("foo") == [G]
    for key in (CURRENT, MEMBER, TARGET, GROUP):
        store.load(key, None)
    assert (store.groups, store.subscribed_to("foo")) == ({}, [])


def test_a_classic_group_takes_the_place_of_a_consumer_group_whose_records_are_left() -> None:
    """A server that does not know the protocol has led the shard meanwhile. As in Kafka, the last record
    counts.
    """
    classic = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="c",
        current_state_timestamp=0,
        members=(MemberMetadata(member_id="c"),),
    )
    state = read((MEMBER, WHOLE.to_metadata()), (GroupMetadataKey(group=G), classic))
    assert (list(state.groups), list(state.consumer.groups), set(state.consumer.topics())) == ([G], [], set())
    again = (GroupMetadataKey(group=G), None), (MEMBER, WHOLE.to_metadata())
    state = read((MEMBER, WHOLE.to_metadata()), (GroupMetadataKey(group=G), classic), *again)
    assert (list(state.groups), list(state.consumer.groups), set(state.consumer.topics())) == (
        [],
        [G],
        {"foo"},
    )
