"""Both assignors; cases 91 to 109. The expected targets are those of Kafka's own tests."""

from __future__ import annotations

import random
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.coordination.groups.consumer.assignors.heterogeneous import assign_unlike
from kshim.coordination.groups.consumer.assignors.range_assignor import assign_ranges
from kshim.coordination.groups.consumer.assignors.spec import AssignorFailed, GroupSpec, InSteps, MemberSpec
from kshim.coordination.groups.consumer.assignors.uniform import assign_uniformly
from kshim.coordination.groups.consumer.partitions import Assignment, size
from tests.coordination.groups.consumer.world import FOO, G, Given, World, held, key_of, stable, target


def kafka_uuid(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(text + "=="))


T1 = kafka_uuid("T1-A4s3VTwiI5CTbEp6POw")
T2 = kafka_uuid("T2-B5s3VTwiI5YHbPp6YUe")
T3 = kafka_uuid("T3-CU8fVTLCz5YMkLoDQsa")
TOPICS = {"t1": T1, "t2": T2, "t3": T3, "u1": UUID(int=1), "u2": UUID(int=2)}
"""In Kafka's tests, assignments keep the order in which topics are put in. Java's order of u1 and u2 is this.
"""
Parts = dict[str, Collection[int]]


def spec(
    partitions: Parts | dict[str, int],
    members: Mapping[str, Any],
    last: Mapping[str, Parts] | None = None,
    homogeneous: bool = True,
    static: Mapping[str, str] | None = None,
) -> GroupSpec:
    return GroupSpec(
        {
            member_id: MemberSpec(
                frozenset(TOPICS[topic] for topic in topics),
                {TOPICS[topic]: frozenset(those) for topic, those in (last or {}).get(member_id, {}).items()},
                (static or {}).get(member_id),
            )
            for member_id, topics in members.items()
        },
        {TOPICS[topic]: count for topic, count in partitions.items()},  # type: ignore[misc]
        homogeneous,
    )


def named(found: Mapping[str, Mapping[UUID, frozenset[int]]], members: Collection[str]) -> dict[str, Parts]:
    names = {topic_id: topic for topic, topic_id in TOPICS.items()}
    return {
        member_id: {names[topic_id]: sorted(those) for topic_id, those in found.get(member_id, {}).items()}
        for member_id in members
    }


def done(work: InSteps[dict[str, Assignment]]) -> dict[str, Assignment]:
    """The result of work that is done in one go."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        return cast("dict[str, Assignment]", end.value)


def expect(assign: Any, group: GroupSpec, expected: Mapping[str, Parts]) -> None:
    wanted = {
        member_id: {topic: sorted(those) for topic, those in parts.items()}
        for member_id, parts in expected.items()
    }
    assert named(done(assign(group)), expected) == wanted


class TestRange:
    def test_91_no_topics(self) -> None:
        expect(assign_ranges, spec({"t1": 3}, {"A": ()}), {"A": {}})
        assert done(assign_ranges(spec({}, {}))) == {}

    def test_92_a_topic_that_does_not_exist(self) -> None:
        with pytest.raises(AssignorFailed, match="non-existent"):
            done(assign_ranges(spec({"t1": 3}, {"A": ("t2",)})))

    def test_93_two_members(self) -> None:
        group = spec({"t1": 3, "t3": 2}, dict.fromkeys("AB", ("t1", "t3")))
        expect(assign_ranges, group, {"A": {"t1": (0, 1), "t3": (0,)}, "B": {"t1": (2,), "t3": (1,)}})

    def test_94_different_subscriptions(self) -> None:
        members = {"A": ("t1", "t2"), "B": ("t3",), "C": ("t2", "t3")}
        expect(
            assign_ranges,
            spec({"t1": 3, "t2": 3, "t3": 2}, members),
            {"A": {"t1": (0, 1, 2), "t2": (0, 1)}, "B": {"t3": (0,)}, "C": {"t2": (2,), "t3": (1,)}},
        )

    def test_95_more_members_than_partitions(self) -> None:
        group = spec({"t1": 3, "t3": 2}, dict.fromkeys("ABC", ("t1", "t3")))
        expected = {"A": {"t1": (0,), "t3": (0,)}, "B": {"t1": (1,), "t3": (1,)}, "C": {"t1": (2,)}}
        expect(assign_ranges, group, expected)
        group = spec({"t1": 2, "t2": 2}, dict.fromkeys("ABC", ("t1", "t2")))
        expected = {"A": {"t1": (0,), "t2": (0,)}, "B": {"t1": (1,), "t2": (1,)}, "C": {}}
        expect(assign_ranges, group, expected)

    def test_96_static_members_come_first(self) -> None:
        static = {"C": "a", "A": "b"}
        group = spec({"t1": 3}, dict.fromkeys("ABC", ("t1",)), static=static)
        expect(assign_ranges, group, {"C": {"t1": (0,)}, "A": {"t1": (1,)}, "B": {"t1": (2,)}})
        again = spec({"t1": 3}, dict.fromkeys("ABZ", ("t1",)), static={"Z": "a", "A": "b"})
        expect(assign_ranges, again, {"Z": {"t1": (0,)}, "A": {"t1": (1,)}, "B": {"t1": (2,)}})

    def test_97_the_last_target_does_not_matter(self) -> None:
        last = {"A": {"t1": (0, 1), "t2": (0, 1)}, "B": {"t1": (2,), "t2": (2,)}}
        both = dict.fromkeys("AB", ("t1", "t2"))
        grown = spec({"t1": 4, "t2": 4}, both, last)
        expect(assign_ranges, grown, {"A": {"t1": (0, 1), "t2": (0, 1)}, "B": {"t1": (2, 3), "t2": (2, 3)}})
        joined = spec({"t1": 3, "t2": 3}, {**both, "C": ("t1", "t2")}, last)
        expect(assign_ranges, joined, {m: {"t1": (n,), "t2": (n,)} for n, m in enumerate("ABC")})
        left = spec({"t1": 3, "t2": 3}, {"B": ("t1", "t2")}, last)
        expect(assign_ranges, left, {"B": {"t1": (0, 1, 2), "t2": (0, 1, 2)}})
        members = {"A": ("t1",), "B": ("t1", "t2", "t3"), "C": ("t2",)}
        expect(
            assign_ranges,
            spec({"t1": 3, "t2": 3, "t3": 2}, members, last),
            {"A": {"t1": (0, 1)}, "B": {"t1": (2,), "t2": (0, 1), "t3": (0, 1)}, "C": {"t2": (2,)}},
        )

    def test_members_are_sorted_as_java_sorts_strings(self) -> None:
        group = spec({"t1": 2}, dict.fromkeys(("\uffff", "😀"), ("t1",)))
        expect(assign_ranges, group, {"😀": {"t1": (0,)}, "\uffff": {"t1": (1,)}})


class TestUniform:
    both = dict.fromkeys("AB", ("t1", "t2"))

    def test_98_the_first_target(self) -> None:
        group = spec({"t1": 3, "t3": 2}, dict.fromkeys("AB", ("t1", "t3")))
        expect(assign_uniformly, group, {"A": {"t3": (0, 1)}, "B": {"t1": (0, 1, 2)}})
        few = spec({"t3": 2}, dict.fromkeys("ABC", ("t3",)))
        expect(assign_uniformly, few, {"A": {}, "B": {"t3": (0,)}, "C": {"t3": (1,)}})

    def test_99_the_last_target_was_not_balanced(self) -> None:
        last = {"A": {"u1": (0, 1), "u2": (0, 1)}, "B": {"u1": (2,), "u2": (2,)}}
        expect(
            assign_uniformly,
            spec({"u1": 3, "u2": 3}, dict.fromkeys("AB", ("u1", "u2")), last),
            {"A": {"u1": (0, 1), "u2": (0,)}, "B": {"u1": (2,), "u2": (1, 2)}},
        )

    def test_100_more_partitions(self) -> None:
        last = {"A": {"t1": (0, 2), "t2": (0,)}, "B": {"t1": (1,), "t2": (1, 2)}}
        expect(
            assign_uniformly,
            spec({"t1": 6, "t2": 5}, self.both, last),
            {"A": {"t1": (0, 2), "t2": (0, 3, 4)}, "B": {"t1": (1, 3, 4, 5), "t2": (1, 2)}},
        )

    def test_101_members_come_and_go(self) -> None:
        last = {"A": {"u1": (0, 2), "u2": (0,)}, "B": {"u1": (1,), "u2": (1, 2)}}
        three = spec({"u1": 3, "u2": 3}, dict.fromkeys("ABC", ("u1", "u2")), last)
        expect(
            assign_uniformly,
            three,
            {"A": {"u1": (0, 2)}, "B": {"u1": (1,), "u2": (1,)}, "C": {"u2": (0, 2)}},
        )
        last = {"A": {"t1": (0,), "t2": (0,)}, "B": {"t1": (1,), "t2": (1,)}}
        expect(
            assign_uniformly,
            spec({"t1": 3, "t2": 3}, dict.fromkeys("AB", ("t1", "t2")), last),
            {"A": {"t1": (0,), "t2": (0, 2)}, "B": {"t1": (1, 2), "t2": (1,)}},
        )

    def test_102_fewer_topics_and_nothing_new(self) -> None:
        last = {"A": {"t1": (0,), "t2": (0,)}, "B": {"t1": (1,), "t2": (1,)}}
        group = spec({"t1": 2, "t2": 2}, dict.fromkeys("AB", ("t2",)), last)
        expect(assign_uniformly, group, {"A": {"t2": (0,)}, "B": {"t2": (1,)}})
        last = {"A": {"t1": (0, 3)}, "B": {"t1": (1,)}, "C": {"t1": (2, 4)}}
        group = spec({"t1": 5}, dict.fromkeys("ABC", ("t1",)), last)
        expect(assign_uniformly, group, last)

    def test_92_a_topic_that_does_not_exist(self) -> None:
        for homogeneous in (True, False):
            with pytest.raises(AssignorFailed, match="doesn't exist"):
                done(assign_uniformly(spec({"t1": 3}, {"A": ("t2",)}, homogeneous=homogeneous)))

    @given(st.data())
    def test_102_valid_balanced_and_sticky(self, data: st.DataObject) -> None:
        names = st.sampled_from(("t1", "t2", "t3"))
        counts = data.draw(st.dictionaries(names, st.integers(1, 40), min_size=1))
        members = {f"m{n}": tuple(counts) for n in range(data.draw(st.integers(1, 30)))}
        first = done(assign_uniformly(spec(counts, members)))
        check_valid(first, counts)
        assert max(map(size, first.values())) - min(map(size, first.values())) <= 1
        partitions = {TOPICS[topic]: count for topic, count in counts.items()}
        ids = frozenset(partitions)
        again = GroupSpec(
            {member_id: MemberSpec(ids, found) for member_id, found in first.items()}, partitions, True
        )
        assert done(assign_uniformly(again)) == first
        assert done(assign_uniformly(again._replace(is_homogeneous=False))) == first


def check_valid(found: Mapping[str, Mapping[UUID, frozenset[int]]], counts: Mapping[str, int]) -> None:
    """Every partition is assigned once."""
    all_of_them = [
        (topic_id, partition)
        for assignment in found.values()
        for topic_id, partitions in assignment.items()
        for partition in partitions
    ]
    expected = {(TOPICS[topic], partition) for topic, count in counts.items() for partition in range(count)}
    assert len(all_of_them) == len(expected)
    assert set(all_of_them) == expected


class TestUniformWithDifferentSubscriptions:
    def unlike(self, partitions: Any, members: Any, expected: Any, last: Any = None) -> None:
        expect(assign_unlike, spec(partitions, members, last, homogeneous=False), expected)

    def test_103_the_first_target(self) -> None:
        self.unlike({"t1": 3}, {"A": (), "B": ()}, {"A": {}, "B": {}})
        self.unlike(
            {"t1": 3, "t3": 6},
            {"A": ("t1", "t3"), "B": ("t3",)},
            {"A": {"t1": (0, 1, 2), "t3": (4,)}, "B": {"t3": (0, 1, 2, 3, 5)}},
        )

    def test_104_more_members_than_partitions(self) -> None:
        self.unlike(
            {"t1": 2, "t3": 1},
            {"A": ("t3",), "B": ("t3",), "C": ("t1",)},
            {"A": {"t3": (0,)}, "B": {}, "C": {"t1": (0, 1)}},
        )

    def test_105_the_last_target_was_not_balanced(self) -> None:
        last = {
            "A": {"t1": (0, 1, 2)},
            "B": {"t1": (3,), "t2": (0,)},
            "C": {"t1": (4, 5), "t2": (1, 2, 3), "t3": (0, 1, 2, 3)},
        }
        self.unlike(
            {"t1": 6, "t2": 4, "t3": 4},
            {"A": ("t1",), "B": ("t1", "t2"), "C": ("t1", "t2", "t3")},
            {
                "A": {"t1": (0, 1, 2, 5)},
                "B": {"t1": (3,), "t2": (0, 1, 2, 3)},
                "C": {"t1": (4,), "t3": (0, 1, 2, 3)},
            },
            last,
        )

    def test_106_partitions_and_members_come(self) -> None:
        last = {"A": {"t1": (0, 2)}, "B": {"t1": (1,), "t2": (1, 2)}, "C": {"t2": (0,)}}
        self.unlike(
            {"t1": 6, "t2": 7},
            {"A": ("t1",), "B": ("t1", "t2"), "C": ("t2",)},
            {"A": {"t1": (0, 2, 3, 4, 5)}, "B": {"t1": (1,), "t2": (1, 2, 6)}, "C": {"t2": (0, 3, 4, 5)}},
            last,
        )

    def test_106_a_subscription_is_gone(self) -> None:
        last = {"A": {"t1": (0,), "t2": (0, 1)}, "B": {"t1": (1, 2), "t2": (2,)}}
        self.unlike(
            {"t1": 3, "t2": 3},
            {"A": ("t1",), "B": ("t2",)},
            {"A": {"t1": (0, 1, 2)}, "B": {"t2": (0, 1, 2)}},
            last,
        )

    def test_partitions_that_do_not_exist(self) -> None:
        """A classic leader has assigned one, or the topic was smaller when it was created again."""
        group = spec({"t1": 1}, {"a": ("t1",)}, {"a": {"t1": (0, 7)}}, homogeneous=False)
        expect(assign_unlike, group, {"a": {"t1": (0,)}})

    def test_107_one_member_has_all(self) -> None:
        last = {"A": {"t1": (0, 1), "t2": (0, 1), "t3": (0, 1)}}
        self.unlike(
            {"t1": 2, "t2": 2, "t3": 2},
            {"A": ("t1", "t2", "t3"), "B": ("t1", "t2")},
            {"A": {"t2": (0,), "t3": (0, 1)}, "B": {"t1": (0, 1), "t2": (1,)}},
            last,
        )
        self.unlike({"t1": 3}, {"A": ("t1",), "B": ()}, {"A": {"t1": (0, 1, 2)}, "B": {}})


class TestTargets:
    """Which records a new target takes."""

    def test_108_nothing_has_changed(self) -> None:
        world = World(Given(11, [(stable("a", names=("foo",)), target(foo=range(6)))], assignment_epoch=10))
        world.heartbeat("a", 10)
        assert [key_of(key) for key, _ in world.records] == [(6, ""), (8, "a")]

    def test_108_only_what_differs_is_written(self) -> None:
        a, b = stable("a", names=("foo",)), stable("b", names=("foo",))
        members = [(a, target(foo=(0, 1, 2))), (b, target(foo=(3, 4)))]
        world = World(Given(11, members, assignment_epoch=10))
        world.heartbeat("a", 10)
        assert [key_of(key) for key, _ in world.records] == [(7, "b"), (6, ""), (8, "a")]

    def test_108_a_member_without_a_target_gets_one_even_if_it_is_empty(self) -> None:
        world = World()
        world.join("a", "nowhere")
        assert [key_of(key) for key, _ in world.records] == [(5, "a"), (3, ""), (7, "a"), (6, ""), (8, "a")]

    def test_109_the_successor_of_a_static_member_gets_its_target(self) -> None:
        gone = stable("a", -2, ("foo",), held(10, foo=(5,)), instance_id="i")
        other = stable("b", names=("foo",))
        world = World(Given(10, [(gone, target(foo=(5,))), (other, target(foo=(0, 1)))]))
        world.join("c", "foo", "bar", instance_id="i")
        assert 5 in world.group().targets["c"][FOO]
        assert "a" not in world.group().targets

    def test_109_names_and_expressions(self) -> None:
        world = World()
        world.join("a", "bar", subscribed_topic_regex="fo.")
        world.advance()
        assert {len(those) for those in world.group().targets["a"].values()} == {6, 3}
        assert list(world.groups()) == [G]


def drawn(chance: random.Random, topics: list[UUID], members: int) -> GroupSpec:
    """A group without a target."""
    is_homogeneous = chance.random() < 0.5
    most = frozenset(topics)
    specs = {
        f"m{number}-{chance.getrandbits(20)}": MemberSpec(
            most if is_homogeneous else frozenset(chance.sample(topics, chance.randint(0, len(topics)))),
            instance_id=f"i{number}" if chance.random() < 0.2 else None,
        )
        for number in range(members)
    }
    return GroupSpec(specs, {topic_id: chance.randint(1, 9) for topic_id in topics}, is_homogeneous)


def test_the_targets_of_drawn_groups() -> None:
    """They are those that the assignors found before they worked in steps; members come and go in between."""
    digest = sha256()
    for seed in range(200):
        chance = random.Random(seed)
        topics = [UUID(int=chance.getrandbits(128)) for _ in range(chance.randint(1, 8))]
        group = drawn(chance, topics, chance.randint(2, 9))
        for assign in (assign_ranges, assign_uniformly):
            members = dict(group.members)
            for _ in range(3):
                found = done(assign(group._replace(members=members)))
                lines = [
                    f"{member_id} {topic_id} {sorted(those)}\n"
                    for member_id in members
                    for topic_id, those in found.get(member_id, {}).items()
                ]
                digest.update("".join(lines).encode())
                members = {
                    member_id: each._replace(target=found.get(member_id, {}))
                    for member_id, each in members.items()
                    if chance.random() < 0.8 or member_id == next(iter(members))
                }
    assert digest.hexdigest() == "34530f539e30b519d9a8d6aac73b456e883319d9dcffed2b95b64b990b77565e"
