"""Subscriptions to many topics: they act like those to few."""

from __future__ import annotations

import pytest

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.consumer.subscriptions import Resolved
from kshim.coordination.groups.consumer.topic_names import MANY, ManyNames, prepared, topic_names
from kshim.coordination.groups.records import encode_record
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.world import FOO, FakeTopics, G, World, shown

NAMES = tuple(f"t{number}" for number in range(MANY + 1))


def joining(member_id: str, names: tuple[str, ...]) -> MemberHeartbeat:
    request = ConsumerGroupHeartbeatRequest(
        group_id=G,
        member_id=member_id,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=names,
        topic_partitions=(),
    )
    return MemberHeartbeat(request, names=prepared(names))


def test_the_record_is_the_same_as_of_names_that_are_not_prepared() -> None:
    few, many = World(), World()
    few.ask(joining("m", NAMES)._replace(names=None))
    many.ask(joining("m", NAMES))
    assert list(map(encode_record, few.journal)) == list(map(encode_record, many.journal))
    assert many.member("m").topic_names == frozenset(NAMES)
    many.reload()
    assert many.member("m").topic_names == frozenset(NAMES)
    assert isinstance(many.member("m").topic_names, ManyNames)


def test_members_share_one_set() -> None:
    world = World()
    world.ask(joining("a", NAMES))
    world.ask(joining("b", NAMES[::-1]))
    assert world.member("a").topic_names is world.member("b").topic_names
    assert world.group().subscriptions.is_homogeneous(2)
    world.ask(joining("c", (*NAMES, "foo")))
    assert not world.group().subscriptions.is_homogeneous(3)
    assert shown(world.join("c", "foo")) == {FOO: {0, 1, 2, 3, 4, 5}}


def test_a_topic_that_is_created_later() -> None:
    world = World()
    world.ask(joining("m", NAMES))
    world.topics.put("t7", 2)
    world.coordinator.topic_changed("t7", "was created", world.now_ms)
    world.advance()
    answer = world.heartbeat("m", world.member("m").epoch)
    assert answer.assignment is not None
    assert [each.partitions for each in answer.assignment.topic_partitions] == [(0, 1)]


def test_described_in_order() -> None:
    world = World()
    world.ask(joining("m", NAMES))
    decision = world.coordinator.handle(Caller(1, 1), DescribeConsumerGroup(G), world.now_ms)
    (member,) = decision.replies[0].response.members
    assert member.subscribed_topic_names == tuple(sorted(NAMES))


def test_what_no_record_can_hold() -> None:
    world = World(message_max_bytes=2 * len(NAMES))
    assert world.ask(joining("m", NAMES)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.journal == []
    with pytest.raises(ValueError, match="a string of 33000 bytes"):
        prepared((*NAMES, "x" * 33_000))


def test_groups_are_found_by_topics_of_sets_that_come_and_go() -> None:
    store = ConsumerGroups()
    group = store.new_group("g")
    store.groups["g"] = group
    known = group.subscriptions
    group.put_member(Member("a", topic_names=topic_names(NAMES)))
    group.put_member(Member("b", topic_names=frozenset({"t1", "foo"})))
    known.resolve("r", Resolved(frozenset((*NAMES, "bar")), 1, 1))
    found = {topic: store.subscribed_to(topic) for topic in ("t1", "t2", "foo", "bar", "no")}
    assert found == {"t1": ["g"], "t2": ["g"], "foo": ["g"], "bar": ["g"], "no": []}
    assert store.topics() == {*NAMES, "foo", "bar"}
    group.remove_member("a")
    known.resolve("r", None)
    assert store.topics() == {"t1", "foo"}
    assert "t2" not in known
    topics = FakeTopics()
    for name in ("t1", "t2"):
        topics.put(name, 1)
    assert [topic.name for topic in known.existing(topics)] == ["t1"]
    group.put_member(Member("b"))
    assert store.topics() == set()
    group.put_member(Member("b", topic_names=topic_names(NAMES)))
    group.put_member(Member("c", topic_names=frozenset({"foo"})))
    store.discard("g")
    assert (store.topics(), store.subscribed_to("t1"), store.subscribed_to("foo")) == (set(), [], [])
