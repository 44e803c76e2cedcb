"""Heartbeats whose answers wait until there is something to say."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.consumer.requests import Patience
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.waiting import CLOSING_MS
from kshim.coordination.groups.timers import TimerKind
from schemas.error_code import ErrorCode
from tests.coordination.groups.consumer.patient import Patient
from tests.coordination.groups.consumer.world import (
    BAR,
    FOO,
    G,
    Given,
    held,
    owned,
    shown,
    stable,
    target,
)

WAIT = TimerKind.WAIT


@pytest.fixture
def world() -> Patient:
    """Member a has all partitions of foo, and its heartbeat waits, under the token 2."""
    found = Patient()
    found.enter("a", "foo")
    assert found.answers[1].heartbeat_interval_ms == 2_000
    found.beat("a", 2)
    assert list(found.answers) == [1]
    return found


class TestWaits:
    def test_less_than_the_interval_that_librdkafka_was_given(self, world: Patient) -> None:
        assert world.due_in(WAIT, "a") == 1_500
        world.advance(1_499)
        assert 2 not in world.answers
        world.advance(1)
        assert (world.answers[2].error_code, world.answers[2].member_epoch) == (0, 2)
        assert shown(world.answers[2]) is None
        assert world.records == ()

    def test_longer_for_others(self, world: Patient) -> None:
        world.beat("a", 2, Patience.LONG)
        assert world.due_in(WAIT, "a") == 8_000
        world.configs.session_ms = 6_000
        token = world.beat("a", 2, Patience.LONG)
        assert world.due_in(WAIT, "a") == 2_000
        world.advance(2_000)
        assert world.answers[token].heartbeat_interval_ms == 100

    def test_the_session_begins_when_it_comes_and_when_it_is_answered(self, world: Patient) -> None:
        world.advance(1_500)
        assert world.due_in(TimerKind.SESSION, "a") == 45_000

    @pytest.mark.parametrize(
        ("epoch", "more"),
        [(2, {"patience": Patience.NONE}), (2, {"is_last": False}), (7, {}), (0, {"topic_partitions": ()})],
    )
    def test_these_do_not_wait(self, world: Patient, epoch: int, more: dict[str, Any]) -> None:
        if epoch == 0:
            more = {**more, "rebalance_timeout_ms": 5_000, "subscribed_topic_names": ("foo",)}
        assert world.beat("a", epoch, **more) in world.answers

    def test_a_full_heartbeat_does_not_wait(self, world: Patient) -> None:
        full = {"rebalance_timeout_ms": 5_000, "subscribed_topic_names": ("foo",)}
        token = world.beat("a", 2, topic_partitions=owned(foo=range(6)), **full)
        assert shown(world.answers[token]) is not None

    def test_another_heartbeat_of_the_member_ends_it(self, world: Patient) -> None:
        world.beat("a", 2)
        assert world.answers[2].error_code == 0
        assert 3 not in world.answers

    def test_another_request_of_the_connection_ends_it(self, world: Patient) -> None:
        for token in (1, 2, 2, 99):
            world._note(world.coordinator.release_member_heartbeat(0, G, token, world.now_ms))
        assert sorted(world.answers) == [1, 2]
        world._note(world.coordinator.release_member_heartbeat(0, "x", 2, world.now_ms))

    def test_a_shard_that_is_given_up(self, world: Patient) -> None:
        decision = world.coordinator.unload(0, world.now_ms)
        assert [(each.token, each.response.error_code) for each in decision.replies] == [
            (2, ErrorCode.NOT_COORDINATOR)
        ]


class TestNews:
    def test_a_member_joins(self, world: Patient) -> None:
        """Each learns what to do as soon as it can be done."""
        joins = world.enter("b", "foo")
        given = shown(world.answers[2])
        assert given is not None
        assert world.member("a").state is MemberState.UNREVOKED_PARTITIONS
        assert joins not in world.answers
        acknowledges = world.beat("a", 2, topic_partitions=owned(foo=given[FOO]))
        assert world.answers[acknowledges].member_epoch == 3
        assert (world.answers[joins].member_epoch, shown(world.answers[joins])) == (
            3,
            {FOO: set(range(6)) - given[FOO]},
        )
        assert world.group().state == "Stable"

    def test_a_member_that_joins_does_not_wait_for_long(self, world: Patient) -> None:
        joins = world.enter("b", "foo")
        world.advance(900)
        assert (world.answers[joins].member_epoch, shown(world.answers[joins])) == (3, {})

    def test_a_member_that_joins_without_an_interval_does_not_wait(self, world: Patient) -> None:
        joins = world.enter("b", "foo", patience=Patience.INTERVAL)
        assert (world.answers[joins].member_epoch, shown(world.answers[joins])) == (3, {})
        world.beat("b", 3, Patience.INTERVAL, topic_partitions=())
        assert world.due_in(WAIT, "b") == 900

    def test_one_that_is_to_give_up_partitions_does_not_wait(self, world: Patient) -> None:
        world.enter("b", "foo")
        token = world.beat("a", 2)
        assert world.answers[token].member_epoch == 2

    @pytest.mark.parametrize("leaves", [True, False])
    def test_a_member_is_gone(self, world: Patient, leaves: bool) -> None:
        world.join("b", "foo")
        kept = shown(world.answers[2])
        assert kept is not None
        world.beat("a", 2, topic_partitions=owned(foo=kept[FOO]))
        world.heartbeat("b", 3)
        token = world.beat("a", 3, Patience.LONG)
        assert token not in world.answers
        if leaves:
            world.heartbeat("b", -1)
            world.advance(CLOSING_MS - 1)
            assert token not in world.answers
            assert world.group().state is GroupState.RECONCILING
            world.advance(1)
        else:
            while world.group().epoch == 3:
                world.advance(1_000)
                if token in world.answers and world.group().epoch == 3:
                    token = world.beat("a", 3, Patience.LONG)
        assert shown(world.answers[token]) == {FOO: set(range(6))}

    def test_while_members_leave_one_after_another_the_others_do_not_hear_of_it(self) -> None:
        """An application closes its consumers. The last one is closed before it was given partitions."""
        world = Patient()
        had = [(each, (number,)) for number, each in enumerate("abcd")]
        world.journal = list(
            Given(
                10,
                [(stable(each, 10, ("foo",), held(10, foo=those)), target(foo=those)) for each, those in had],
            ).records(G, world.topics)
        )
        world.reload()
        token = world.beat("a", 10, Patience.LONG)
        assert token not in world.answers
        for member_id in "bcd":
            world.heartbeat(member_id, -1)
            world.advance(CLOSING_MS - 1)
            assert token not in world.answers
        world.heartbeat("a", -1)
        assert world.answers[token].error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_members_that_leave_for_long_do_not_put_an_answer_off_beyond_its_time(
        self, world: Patient
    ) -> None:
        began_ms = world.now_ms
        while 2 not in world.answers:
            world.join("b", "foo")
            world.heartbeat("b", -1)
            world.advance(CLOSING_MS - 1)
        assert world.now_ms - began_ms < 1_500 + CLOSING_MS

    def test_the_member_itself_is_removed(self, world: Patient) -> None:
        world.heartbeat("a", -1)
        assert world.answers[2].error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_topic_grows(self, world: Patient) -> None:
        world.topics.put("foo", 7)
        world.coordinator.topic_changed("foo", "has more partitions", world.now_ms)
        world.advance()
        assert shown(world.answers[2]) == {FOO: set(range(7))}

    def test_the_group_has_other_configs(self, world: Patient) -> None:
        world.configs.session_ms, world.configs.interval_ms, world.configs.is_set = 20_000, 700, True
        world.coordinator.group_configs_changed(["other", G], world.now_ms)
        world.advance()
        assert world.answers[2].heartbeat_interval_ms == 700
        assert world.due_in(TimerKind.SESSION, "a") == 20_000
        assert world.due_in(WAIT, "a") is None

    def test_nothing_that_matters_to_it(self, world: Patient) -> None:
        world.coordinator.topic_changed("foo", "is the same", world.now_ms)
        world.topics.put("bar", 9)
        world.coordinator.topic_changed("bar", "has more partitions", world.now_ms)
        world.advance()
        assert 2 not in world.answers


class TestExpressions:
    def test_a_join_waits_until_the_topics_have_been_searched(self) -> None:
        world = Patient()
        token = world.enter("a", subscribed_topic_regex="fo.|bar")
        assert (token in world.answers, world.kinds()) == (False, [5, 8])
        world.advance()
        answer = world.answers[token]
        assert (answer.member_epoch, shown(answer)) == (2, {FOO: set(range(6)), BAR: {0, 1, 2}})
        assert world.group().state == "Stable"

    def test_one_that_matches_nothing(self) -> None:
        world = Patient()
        token = world.enter("a", subscribed_topic_regex="nothing")
        assert token not in world.answers
        world.advance()
        assert (world.answers[token].member_epoch, shown(world.answers[token])) == (1, {})

    def test_a_member_changes_its_expression(self, world: Patient) -> None:
        token = world.beat("a", 2, subscribed_topic_regex="bar")
        assert token not in world.answers
        world.advance()
        assert shown(world.answers[token]) == {FOO: set(range(6)), BAR: {0, 1, 2}}

    def test_a_join_with_partitions_of_named_topics_does_not_wait(self) -> None:
        world = Patient()
        token = world.enter("a", "foo", subscribed_topic_regex="bar")
        assert shown(world.answers[token]) == {FOO: set(range(6))}

    def test_a_member_that_gets_partitions_hears_of_them_before_the_search(self, world: Patient) -> None:
        """What the heartbeat would wait as says nothing of them, and is of an old epoch."""
        token = world.beat("a", 2, subscribed_topic_names=("foo", "bar"), subscribed_topic_regex="zar")
        answer = world.answers[token]
        assert (answer.member_epoch, shown(answer)) == (3, {FOO: set(range(6)), BAR: {0, 1, 2}})
