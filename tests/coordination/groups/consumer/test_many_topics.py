"""Subscriptions to many topics: they act like those to few."""

from __future__ import annotations

import tracemalloc

import pytest

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer import subscriptions
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.consumer.subscriptions import Resolved
from kshim.coordination.groups.consumer.topic_names import (
    MANY,
    UNPREPARED,
    ManyNames,
    Prepared,
    kept_bytes,
    prepared,
    topic_names,
)
from kshim.coordination.groups.records import encode_record
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.join_group import JoinGroupRequestProtocol
from tests.coordination.groups.consumer.mixed import Mixed, subscription
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
    return MemberHeartbeat(request, prepared=Prepared(prepared(names)))


def test_the_record_is_the_same_as_of_names_that_are_not_prepared() -> None:
    few, many = World(), World()
    few.ask(joining("m", NAMES)._replace(prepared=UNPREPARED))
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


# ---- memory


def fresh(count: int, prefix: str = "some-topic-") -> list[str]:
    """New objects, as a request has them."""
    return [f"{prefix}{number:05}" for number in range(count)]


def test_a_set_knows_what_it_takes() -> None:
    for count in (MANY + 1, 20_000):
        tracemalloc.start()
        many = prepared(fresh(count))
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept_bytes(many) == pytest.approx(taken, rel=0.1)


def test_sets_that_differ_share_names() -> None:
    first = prepared(fresh(20_000))
    assert isinstance(first, ManyNames)
    names = fresh(20_001)
    tracemalloc.start()
    second = prepared(names, first)
    del names
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert second == frozenset(fresh(20_001))
    assert taken < 0.7 * kept_bytes(second)


def offered(names: list[str]) -> tuple[JoinGroupRequestProtocol, ...]:
    """The protocols of a classic member that names these topics."""
    return (JoinGroupRequestProtocol(name="range", metadata=subscription(*names)),)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group has room for the names of two sets of 100."""
    monkeypatch.setattr(subscriptions, "MOST_NAMES_BYTES", 2.5 * kept_bytes(frozenset(fresh(100))))


@pytest.mark.usefixtures("small")
def test_names_that_would_take_too_much_are_refused() -> None:
    world = World()
    full = ErrorCode.GROUP_MAX_SIZE_REACHED
    for member_id, prefix in (("a", "a-topic-of-"), ("b", "b-topic-of-")):
        assert world.join(member_id, *fresh(100, prefix)).error_code == 0
    answer = world.join("c", *fresh(100))
    assert answer.error_code == full
    assert "too many different topics" in (answer.error_message or "")
    assert set(world.group().members) == {"a", "b"}
    assert world.join("c", *fresh(100, "a-topic-of-")[::-1]).error_code == 0  # as a names them
    assert world.heartbeat("c", 4, subscribed_topic_names=tuple(fresh(100))).error_code == full
    world.heartbeat("b", -1)
    assert world.heartbeat("c", 4, subscribed_topic_names=tuple(fresh(100))).error_code == 0
    for member_id in "ac":
        world.heartbeat(member_id, -1)
    assert world.group().subscriptions.names_bytes == 0


@pytest.mark.usefixtures("small")
def test_other_groups_have_room() -> None:
    world = World()
    for number in range(4):
        world.join("a", *fresh(100, f"{number}-topic-of-"), group_id=f"g{number}")
    assert len(world.groups()) == 4


@pytest.mark.usefixtures("small")
def test_classic_members_that_name_too_many() -> None:
    world = Mixed()
    world.join("a", *fresh(100, "a-topic-of-"))
    world.join("b", *fresh(100, "b-topic-of-"))
    token = world.join_classic(protocols=offered(fresh(100)))
    assert world.answers[token].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.usefixtures("small")
def test_a_classic_group_that_names_too_many_is_not_converted() -> None:
    world = Mixed()
    world.classic(protocols=offered(fresh(1_000)))
    answer = world.join("a", "foo")
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (answer.error_message or "").endswith("because its members name too many different topics.")
