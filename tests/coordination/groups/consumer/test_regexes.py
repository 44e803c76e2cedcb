"""Subscriptions by regular expression; cases 15 and 110 to 121."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from kshim.coordination.groups.consumer import computing, regexes, searching
from kshim.coordination.groups.consumer.requests import MemberHeartbeat
from kshim.coordination.groups.consumer.subscriptions import Resolved
from kshim.coordination.groups.timers import TimerKind
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.world import (
    BAR,
    FOO,
    START_MS,
    G,
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

LONG_AGO = START_MS - 600_001


def resolved(*topics: str, at_ms: int = START_MS, version: int = 2) -> Resolved:
    return Resolved(frozenset(topics), version, at_ms)


def searched(world: World) -> dict[str, tuple[str, ...]]:
    """What the last step wrote of expressions."""
    return {
        key.regular_expression: value.topics
        for key, value in world.records
        if isinstance(key, ConsumerGroupRegularExpressionKey)
        and isinstance(value, ConsumerGroupRegularExpressionValue)
    }


def using(regex: str, *topics: str, at_ms: int = START_MS) -> World:
    """A group at epoch 10 with a member `a` that uses an expression, which matches these topics."""
    member = stable("a", names=(), regex=regex, assigned=held(10, **dict.fromkeys(topics, (0,))))
    wanted = target(**dict.fromkeys(topics, (0,)))
    return running(Given(10, [(member, wanted)], resolved={regex: resolved(*topics, at_ms=at_ms)}))


def shared(**of_b: Collection[int]) -> World:
    """A group at epoch 10: `a` names the topic foo, `b` uses an expression, and has these partitions."""
    of_a = {*range(6)}.difference(*of_b.values())
    members = [
        (stable("a", names=("foo",), assigned=held(10, foo=of_a)), target(foo=of_a)),
        (stable("b", names=(), regex="fo+", assigned=held(10, **of_b)), target(**of_b)),
    ]
    return running(Given(10, members, resolved={"fo+": resolved("foo", at_ms=LONG_AGO)}))


def running(given: Given) -> World:
    """A group whose topics need not be looked at."""
    world = World(given)
    world.group().refresh_at = (START_MS + 2**31, 10)
    return world


class TestValidity:
    @pytest.mark.parametrize("regex", ["[", "(?=a)", r"(a)\1"])
    def test_15_an_invalid_one(self, regex: str) -> None:
        world = World()
        error, message = error_of(world.join("m", subscribed_topic_regex=regex))
        assert error is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert message is not None
        assert message.startswith(f"SubscribedTopicRegex `{regex}` is not a valid regular expression: ")
        assert message.endswith(".")
        assert "b'" not in message
        assert world.groups() == {}

    def test_15_it_is_not_looked_at_while_a_member_uses_it(self) -> None:
        """A log may hold what another implementation found valid."""
        world = using("[", "foo")
        assert world.join("b", subscribed_topic_regex="[").error_code == 0


class TestSearches:
    def test_110_an_expression_that_others_use(self) -> None:
        world = using("fo+", "foo")
        answer = world.join("b", subscribed_topic_regex="fo+")
        assert (answer.member_epoch, world.kinds()[:2]) == (11, [5, 3])

    def test_111_a_new_expression(self) -> None:
        world = World(Given(10, [(stable("a", names=("foo",)), {})]))
        answer = world.join("b", subscribed_topic_regex="fo+")
        assert (answer.member_epoch, shown(answer), world.kinds()) == (10, {}, [5, 8])
        world.advance()
        assert world.kinds() == [16, 3, 7, 7, 6]
        assert searched(world) == {"fo+": ("foo",)}
        assert world.group().subscriptions.resolved["fo+"] == resolved("foo")
        answer = world.heartbeat("b", 10)
        assert (answer.member_epoch, world.group().epoch) == (11, 11)
        assert shown(answer)

    def test_112_another_expression(self) -> None:
        world = using("foo*", "foo", at_ms=LONG_AGO)
        answer = world.heartbeat("a", 10, subscribed_topic_regex="foo*|bar*", topic_partitions=())
        assert world.kinds() == [5, -16, 8]
        assert (answer.member_epoch, shown(answer)) == (10, {})
        world.advance()
        assert world.kinds() == [16, 3, 7, 6]
        answer = world.heartbeat("a", 10, topic_partitions=())
        assert (answer.member_epoch, shown(answer)) == (11, {FOO: set(range(6)), BAR: {0, 1, 2}})

    def test_another_expression_that_matches_nothing(self) -> None:
        world = shared(foo=(3, 4, 5))
        answer = world.heartbeat("b", 10, subscribed_topic_regex="nothing", topic_partitions=())
        assert (answer.member_epoch, shown(answer), world.group().epoch) == (10, {}, 10)
        world.advance()
        assert (searched(world), world.group().epoch) == ({"nothing": ()}, 11)
        assert shown(world.heartbeat("a", 10)) == {FOO: set(range(6))}

    def test_another_expression_that_matches_nothing_while_a_target_is_computed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(computing, "MOST_STEPS", 1)
        world = shared()
        world.join("c", "foo")
        assert world.group().computation is not None
        world.heartbeat("b", 10, subscribed_topic_regex="nothing", topic_partitions=())
        world.advance(regexes.PAUSE_MS)
        wanted = {each: len(some.get(FOO, ())) for each, some in world.group().targets.items()}
        assert (world.group().epoch, wanted) == (12, {"a": 3, "b": 0, "c": 3})

    def test_after_a_search_few_targets_are_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(regexes, "MOST_TARGETS", 0)
        world = running(Given(10, [(stable("a", names=("foo",), regex="fo+"), target(foo=range(6)))]))
        world.heartbeat("a", 10, subscribed_topic_regex="nothing")
        world.advance()
        assert (searched(world), world.group().epoch) == ({"nothing": ()}, 11)

    def test_an_expression_that_matches_nothing_leaves_what_its_member_names(self) -> None:
        world = running(Given(10, [(stable("a", names=("foo",), regex="fo+"), target(foo=range(6)))]))
        world.heartbeat("a", 10, subscribed_topic_regex="nothing")
        world.advance()
        assert (searched(world), world.group().epoch) == ({"nothing": ()}, 10)

    def test_113_the_expression_changes_before_it_was_searched_for(self) -> None:
        world = World()
        world.join("a", subscribed_topic_regex="fo+")
        assert world.group().epoch == 1
        world.heartbeat("a", 1, subscribed_topic_regex="ba.")
        assert world.kinds() == [5, -16, 8]
        world.advance()
        assert searched(world) == {"ba.": ("bar",)}

    def test_113_the_expression_changes_during_the_search(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "MOST_STEPS", 1)
        world = World()
        world.join("a", subscribed_topic_regex="fo+")
        shard = world.coordinator._shards[0].consumer
        assert world.group().search is None
        it = world.coordinator.advance(world.now_ms)
        world._note(next(it))
        assert world.group().search is not None
        world.heartbeat("a", 1, subscribed_topic_regex="ba.")
        world.advance(10 * regexes.PAUSE_MS)
        assert searched(world) == {"ba.": ("bar",)}
        assert shard.groups[G].subscriptions.resolved.keys() == {"ba."}

    def test_114_a_new_topic(self) -> None:
        world = using("fo.*", "foo")
        member = stable("b", names=(), regex="f.*")
        given = Given(
            10,
            [(world.member("a"), {}), (member, {})],
            resolved={"fo.*": resolved("foo"), "f.*": resolved("foo")},
        )
        world.journal = list(given.records(G, world.topics))
        world.reload()
        world.heartbeat("a", 10)
        world.topics.put("fob", 1)
        world.advance(10_000)
        world.heartbeat("a", 10)
        world.advance()
        assert searched(world) == {}
        world.advance(1_000)
        world.heartbeat("a", 10)
        world.advance()
        assert searched(world) == {"fo.*": ("fob", "foo"), "f.*": ("fob", "foo")}
        assert world.kinds().count(3) == 1

    def test_a_new_topic_is_found_without_a_heartbeat(self) -> None:
        world = World()
        world.join("a", subscribed_topic_regex="fo.*")
        world.advance(2 * regexes.PAUSE_MS)
        world.heartbeat("a", world.member("a").epoch)
        world.create("fob", 1)
        world.advance()
        assert searched(world) == {"fo.*": ("fob", "foo")}
        assert "fob" in {world.topics.with_id(each).name for each in world.group().targets["a"]}

    def test_another_expression_is_searched_for_soon(self) -> None:
        world = World()
        world.join("a", subscribed_topic_regex="fo+")
        world.advance()
        world.join("b", subscribed_topic_regex="ba.")
        assert world.due_in(TimerKind.REGEX) == regexes.PAUSE_MS
        world.advance(regexes.PAUSE_MS)
        assert searched(world) == {"fo+": ("foo",), "ba.": ("bar",)}

    def test_topics_that_are_created_one_by_one_are_found_together(self) -> None:
        world = World()
        world.join("a", subscribed_topic_regex="fo.*")
        world.advance(2 * regexes.PAUSE_MS)
        found = []
        for number in range(2 * regexes.PAUSE_MS):
            world.create(f"fo{number}", 1)
            world.advance(1)
            if searched(world):
                found.append(len(searched(world)["fo.*"]))
        assert found == [2, 1 + regexes.PAUSE_MS, 1 + 2 * regexes.PAUSE_MS]

    def test_after_a_long_search_the_next_one_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "MOST_STEPS", 1)
        world = World()
        world.join("a", subscribed_topic_regex="fo.*")
        world.advance()
        slices = 1 + len(world.topics.names())
        world.create("fob", 1)
        assert world.due_in(TimerKind.REGEX) == slices * regexes.PAUSE_MS
        world.heartbeat("a", world.member("a").epoch)
        assert world.due_in(TimerKind.REGEX) == slices * regexes.PAUSE_MS
        world.advance(regexes.SHORTEST_REFRESH_MS)
        for number in range(2 * regexes.SHORTEST_REFRESH_MS // regexes.PAUSE_MS):
            world.topics.put(f"topic-{number}", 1)
        world.create("foc", 1)
        world.advance()
        world.create("fod", 1)
        assert world.due_in(TimerKind.REGEX) == regexes.SHORTEST_REFRESH_MS

    def test_a_topic_that_is_created_during_the_search(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "MOST_STEPS", 1)
        world = World()
        world.join("a", subscribed_topic_regex="fo.*")
        world._note(next(world.coordinator.advance(world.now_ms)))
        world.create("fob", 1)
        world.advance(10 * regexes.PAUSE_MS)
        assert world.group().subscriptions.resolved["fo.*"].topics == {"fob", "foo"}

    def test_after_a_load_the_first_heartbeat_says_what_its_member_may_see(self) -> None:
        world = using("fo.*", "foo", at_ms=LONG_AGO)
        world.create("fob", 1)
        world.advance()
        assert searched(world) == {}
        request = ConsumerGroupHeartbeatRequest(group_id=G, member_id="a", member_epoch=10)
        world.ask(MemberHeartbeat(request, lambda names: [name for name in names if name != "fob"]))
        world.advance()
        assert searched(world) == {"fo.*": ("foo",)}
        world.create("foc", 1)
        world.advance(regexes.PAUSE_MS)
        assert searched(world) == {"fo.*": ("foc", "foo")}

    def test_a_group_without_expressions_does_not_search(self) -> None:
        world = using("fo.*", "foo")
        world.heartbeat("a", 10, subscribed_topic_regex="", subscribed_topic_names=("foo",))
        world.create("fob", 1)
        assert world.due_in(TimerKind.REGEX) is None

    def test_115_no_expression_any_more(self) -> None:
        world = using("fo+", "foo")
        answer = world.heartbeat("a", 10, subscribed_topic_regex="", topic_partitions=())
        assert world.kinds() == [5, -16, 3, 7, 6, 8]
        assert (answer.member_epoch, shown(answer)) == (11, {})
        assert world.group().subscriptions.resolved == {}

    def test_116_topics_that_the_client_may_not_see(self) -> None:
        world = World()

        def join(epoch: int, regex: str | None, seen: Collection[str]) -> Any:
            more = {"rebalance_timeout_ms": 5_000, "topic_partitions": ()} if epoch == 0 else {}
            request = ConsumerGroupHeartbeatRequest(
                group_id=G, member_id="a", member_epoch=epoch, subscribed_topic_regex=regex, **more
            )
            return world.ask(MemberHeartbeat(request, lambda names: [name for name in names if name in seen]))

        join(0, "foo|bar", ["foo"])
        world.advance()
        assert searched(world) == {"foo|bar": ("foo",)}
        world.advance(10_001)
        join(1, "foo|bar|zar", ["foo", "bar"])
        world.advance()
        assert searched(world) == {"foo|bar|zar": ("bar", "foo")}
        world.advance(20_000)
        join(world.member("a").epoch, None, ["foo"])
        world.advance()
        assert searched(world) == {}
        for _ in range(15):
            world.advance(40_000)
            join(world.member("a").epoch, None, ["foo"])
        world.advance()
        assert searched(world) == {"foo|bar|zar": ("foo",)}

    def test_117_a_static_member_comes_back_with_another(self) -> None:
        member = stable("a", -2, (), held(10, foo=(0,)), regex="fo+", instance_id="i")
        given = Given(10, [(member, target(foo=(0,)))], resolved={"fo+": resolved("foo", at_ms=LONG_AGO)})
        world = running(given)
        answer = world.join("b", subscribed_topic_regex="fo+|bar", instance_id="i")
        assert world.kinds() == [-8, -7, -5, 5, 7, 8, 5, -16, 8]
        assert (answer.member_epoch, shown(answer)) == (10, {})
        world.advance()
        answer = world.heartbeat("b", 10)
        assert (answer.member_epoch, shown(answer)) == (11, {FOO: set(range(6)), BAR: {0, 1, 2}})

    @pytest.mark.parametrize("expires", [False, True])
    def test_119_the_last_member_that_used_it_is_gone(self, expires: bool) -> None:
        world = using("fo+", "foo")
        world.join("b", subscribed_topic_regex="fo+")
        world.heartbeat("a", -1)
        assert -16 not in world.kinds()
        world.advance()
        if expires:
            world.advance(45_000)
        else:
            world.heartbeat("b", -1)
        assert [key_of(key) for key, _ in world.records][:5] == [
            (8, "b"),
            (7, "b"),
            (5, "b"),
            (16, "fo+"),
            (3, ""),
        ]

    def test_120_a_topic_is_created_and_deleted(self) -> None:
        world = World()
        del world.topics.by_name["foo"]
        world.join("a", subscribed_topic_regex="foo*")
        world.advance()
        assert (world.group().epoch, searched(world)) == (1, {"foo*": ()})
        world.topics.put("foo", 3)
        world.advance(10_001)
        world.heartbeat("a", 1)
        world.advance()
        assert shown(world.heartbeat("a", 1)) == {FOO: {0, 1, 2}}
        assert world.member("a").epoch == 2
        del world.topics.by_name["foo"]
        world.coordinator.topic_changed("foo", "is deleted", world.now_ms)
        world.advance()
        assert shown(world.heartbeat("a", 2)) == {}
        world.heartbeat("a", 2, topic_partitions=())
        assert world.member("a").epoch == 3

    def test_internal_topics_match_too(self) -> None:
        world = World()
        world.topics.put("__consumer_offsets", 50)
        world.join("a", subscribed_topic_regex=".*")
        world.advance()
        assert searched(world) == {".*": ("__consumer_offsets", "bar", "foo")}

    def test_a_long_search_lets_others_have_their_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "MOST_STEPS", 1)
        world = World()
        world.join("a", subscribed_topic_regex="fo+")
        decisions = [*world.coordinator.advance(world.now_ms)]
        assert len(decisions) > 2
        assert [len(each.records) for each in decisions[:2]] == [0, 0]

    def test_many_matches_are_written_a_part_at_a_time_and_set_off_one_rebalance(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(regexes, "MOST_MATCHES", 1)
        members = [(stable(each, names=(), regex=f"{each}|foo|bar"), target()) for each in "abc"]
        world = running(Given(10, members))
        world.heartbeat("a", 10)
        steps = []
        for decision in world.coordinator.advance(world.now_ms):
            world._note(decision)
            steps.append((world.kinds()[:2], world.group().epoch))
        assert steps[:3] == [([16], 10), ([16], 10), ([16, 3], 11)]
        assert {each.topics for each in world.group().subscriptions.resolved.values()} == {
            frozenset({"foo", "bar"})
        }

    def test_82_names_and_an_expression(self) -> None:
        world = World()
        world.join("a", "bar", subscribed_topic_regex="fo+")
        world.advance()
        world.heartbeat("a", 2, topic_partitions=owned(bar=(0, 1, 2)))
        assert set(world.member("a").assigned) == {FOO, BAR}
        assert world.due_in(TimerKind.REGEX) is None
