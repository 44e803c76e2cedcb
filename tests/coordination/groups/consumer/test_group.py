"""What a group keeps count of; cases 42 to 43, 83 to 85, and 137."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from kshim.coordination.groups.consumer.describe import describe
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.partition_epochs import FREE, StillOwned
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.consumer.subscriptions import Resolved
from schemas.internal_topics.consumer_group_log import ClassicMemberMetadata, ClassicProtocol
from tests.coordination.groups.consumer.world import FOO, FakeTopics, held, target


def member(member_id: str, names: Collection[str] = (), regex: str = "") -> Member:
    return Member(member_id, topic_names=frozenset(names), regex=regex)


def group_of(*members: Member, **resolved: Collection[str]) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for each in members:
        group.put_member(each)
    for regex, topics in resolved.items():
        group.subscriptions.resolve(regex, Resolved(frozenset(topics), 1, 1))
    return group


@pytest.mark.parametrize(
    ("group", "is_homogeneous"),
    [
        (group_of(), True),
        (group_of(member("a", ["foo"]), member("b", ["foo"])), True),
        (group_of(member("a", ["foo"]), member("b", ["foo", "bar"])), False),
        (group_of(member("a", ["foo"]), member("b")), False),
        (group_of(member("a", regex="r"), member("b", regex="r"), r=["foo", "bar"]), True),
        (group_of(member("a", regex="r"), member("b", regex="r")), True),
        (group_of(member("a", regex="r"), member("b", regex="s"), r=["foo"], s=["foo"]), False),
        (group_of(member("a", regex="r"), member("b"), r=["foo"]), False),
        (group_of(member("a", ["foo"], "r"), member("b", ["foo"], "r"), r=["bar"]), False),
    ],
)
def test_42_homogeneous_groups(group: ConsumerGroup, is_homogeneous: bool) -> None:
    assert group.subscriptions.is_homogeneous(len(group.members)) is is_homogeneous


def test_the_hash_code_of_each_member_is_kept() -> None:
    group = group_of(member("a"), member("polygenelubricants"))
    group.put_member(member("a", ["foo"]))
    assert group.hash_codes == {"a": 97, "polygenelubricants": 2**31}
    group.remove_member("a")
    assert group.hash_codes.keys() == group.members.keys()


def test_43_topics_and_expressions_are_counted() -> None:
    store = ConsumerGroups()
    group = store.new_group("g")
    known = group.subscriptions
    group.put_member(member("a", ["foo"], "r"))
    group.put_member(member("b", ["foo", "bar"], "r"))
    known.resolve("r", Resolved(frozenset({"foo", "zar"}), 1, 1))
    assert known.by_name == {"foo": 2, "bar": 1}
    assert known.by_regex == {"foo": 1, "zar": 1}
    assert known.regexes == {"r": 2}
    topics = FakeTopics()
    for name in ("zar", "foo", "no.such", "bar"):
        topics.put(name, 1)
    assert [topic.name for topic in known.existing(topics)] == ["bar", "foo", "zar"]
    assert store.subscribed_to("zar") == ["g"]
    group.put_member(member("b", ["foo"]))
    known.resolve("r", Resolved(frozenset({"foo"}), 2, 2))
    assert (known.by_name, known.by_regex, known.regexes) == ({"foo": 2}, {"foo": 1}, {"r": 1})
    assert store.subscribed_to("zar") == store.subscribed_to("bar") == []
    group.remove_member("a")
    known.resolve("r", None)
    assert store.subscribed_to("foo") == ["g"]
    group.remove_member("b")
    assert (known.by_name, known.by_regex, known.regexes, known.resolved) == ({}, {}, {}, {})
    assert store.subscribed_to("foo") == []


def test_137_classic_members_and_their_protocols_are_counted() -> None:
    group = group_of(member("consumer", ["foo"]))
    known = group.subscriptions
    for member_id, protocols in {"a": ("range", "roundrobin"), "b": ("range",)}.items():
        offered = tuple(ClassicProtocol(name=each) for each in protocols)
        classic = ClassicMemberMetadata(supported_protocols=offered)
        group.put_member(Member(member_id, classic=classic))
    assert (known.classic_members, known.classic_protocols) == (2, {"range": 2, "roundrobin": 1})
    group.put_member(Member("a"))
    assert (known.classic_members, known.classic_protocols) == (1, {"range": 1})
    group.remove_member("b")
    assert (known.classic_members, known.classic_protocols) == (0, {})


def test_46_groups_are_found_by_their_topics() -> None:
    store = ConsumerGroups()
    for group_id in ("two", "one"):
        store.new_group(group_id).put_member(member("a", ["foo"]))
    assert store.subscribed_to("foo") == ["one", "two"]
    assert store.subscribed_to("bar") == []


class TestPartitionEpochs:
    def test_83_they_follow_the_member(self) -> None:
        group = ConsumerGroup("g")
        epoch_of = group.partition_epochs.of
        group.put_member(Member("a", epoch=10, assigned=held(10, foo=(1,)), revoking=held(9, foo=(2,))))
        assert [epoch_of(FOO, each) for each in (1, 2, 3)] == [10, 10, FREE]
        group.put_member(Member("a", epoch=11, assigned=held(10, foo=(2, 3))))
        assert [epoch_of(FOO, each) for each in (1, 2, 3)] == [FREE, 11, 11]
        group.remove_member("a")
        assert [epoch_of(FOO, each) for each in (1, 2, 3)] == [FREE, FREE, FREE]
        assert group.partition_epochs._epochs == {}

    def test_83_another_member_takes_one_at_a_higher_epoch(self) -> None:
        group = ConsumerGroup("g")
        group.put_member(Member("a", epoch=10, assigned=held(10, foo=(1,))))
        group.put_member(Member("b", epoch=11, assigned=held(11, foo=(1,))))
        assert group.partition_epochs.of(FOO, 1) == 11
        group.put_member(Member("a", epoch=12))
        assert group.partition_epochs.of(FOO, 1) == 11

    @pytest.mark.parametrize("epoch", [9, 10])
    def test_83_but_not_at_the_same_or_a_lower_one(self, epoch: int) -> None:
        group = ConsumerGroup("g")
        group.put_member(Member("a", epoch=10, assigned=held(10, foo=(1,))))
        with pytest.raises(StillOwned, match="still owned at epoch 10"):
            group.put_member(Member("b", epoch=epoch, assigned=held(10, foo=(1,))))


def test_85_a_new_member() -> None:
    new = Member("m")
    assert (new.epoch, new.previous_epoch, new.state) == (0, -1, MemberState.STABLE)
    assert (new.rebalance_timeout_ms, new.regex, new.server_assignor, new.classic) == (-1, "", None, None)
    assert (new.assigned, new.revoking, new.topic_names) == ({}, {}, frozenset())
    assert new == Member("m", assigned={}, revoking={})


@pytest.mark.parametrize("state", MemberState)
def test_85_records_hold_all_of_it(state: MemberState) -> None:
    whole = Member(
        "m",
        epoch=7,
        previous_epoch=6,
        state=state,
        instance_id="i",
        rack_id="r",
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=5,
        topic_names=frozenset(("b", "a")),
        regex="x",
        server_assignor="range",
        assigned={FOO: {1: 5, 0: 7}},
        revoking=held(6, bar=(2,)),
    )
    assert whole.to_metadata().subscribed_topic_names == ("a", "b")
    assert Member("m").with_metadata(whole.to_metadata()).with_current(whole.to_current()) == whole


def test_85_what_is_described() -> None:
    """Also the partitions that it is to give up (KAFKA-20431). Topics that are gone are left out."""
    topics = FakeTopics()
    topics.put("foo", 6)
    group = ConsumerGroup("g")
    revoking = held(3, foo=(0,), bar=(1,))
    group.put_member(Member("m", epoch=3, assigned=held(3, foo=(2, 1)), revoking=revoking))
    group.put_member(Member("n", regex="r"))
    group.targets["m"] = target(foo=(1,), bar=(2,))
    described = describe(group, topics, ("uniform", "range"))
    m, n = described.members
    shown = [(each.topic_name, each.partitions) for each in m.assignment.topic_partitions]
    assert shown == [("foo", (0, 1, 2))]
    assert [each.partitions for each in m.target_assignment.topic_partitions] == [(1,)]
    assert n.target_assignment.topic_partitions == ()
    assert (m.subscribed_topic_regex, n.subscribed_topic_regex, m.member_type) == ("", "r", 1)
    assert described.assignor_name == "uniform"
