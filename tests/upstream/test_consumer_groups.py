"""Consumer groups in front of an upstream: what their members have follows from the upstream's topics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kshim.coordination.loading import Leader
from kshim.upstream.here import HERE
from kshim.upstream.member_topics import AGAIN_S
from kshim.upstream.soon_after import AFTER_S
from kshim.upstream.topics import ABSENT_S, LOOK_S
from schemas.api_key import ApiKey
from schemas.consumer_protocol import (
    TopicPartition,
)
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import TopicPartitions
from schemas.messages.create_partitions import CreatePartitionsRequest
from schemas.messages.create_topics import CreateTopicsRequest
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.registry import decode_response
from tests.api.harness import advance, later, result
from tests.upstream.consumer_members import STALE_S, A, B, G, Members, had
from tests.upstream.front_world import SHARDS
from tests.upstream.kafka_groups import Group


@pytest.fixture
def world() -> Members:
    return Members()


# ---- topics are learned


def test_a_member_gets_the_partitions_of_the_topics_that_it_names(world: Members) -> None:
    assert world.join("m", "a", "b", "absent") == {A: (0, 1, 2), B: (0, 1)}


def test_a_join_goes_by_the_upstream_s_present_partitions(world: Members) -> None:
    world.join("m", "a")
    world.partitions["a"] = 4
    world.pass_s(STALE_S)
    assert world.join("m", "a") == {A: (0, 1, 2, 3)}


def test_nobody_joins_while_the_upstream_cannot_be_asked(world: Members) -> None:
    world.is_down = True
    answer = world.beat("m", 0, "a")
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.is_down = False
    assert world.join("m", "a") == {A: (0, 1, 2)}


def test_a_topic_that_the_upstream_does_not_let_kshim_see_is_refused_as_by_kafka(world: Members) -> None:
    world.hidden_topics = {"b", "absent"}
    for names in (("a", "b"), ("absent",), ("b",)):
        assert world.beat("m", 0, *names).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.join("m", "a") == {A: (0, 1, 2)}
    world.hidden_topics = set()
    world.pass_s(STALE_S)
    assert world.join("m", "a", "b", "absent") == {A: (0, 1, 2), B: (0, 1)}


def test_a_heartbeat_that_names_nothing_asks_for_nothing(world: Members) -> None:
    epoch = world.beat("m", 0, "a").member_epoch
    world.pass_s(STALE_S)
    world.asked.clear()
    world.is_down = True
    assert world.beat("m", epoch).error_code == ErrorCode.NONE
    assert world.asked == []


def test_a_group_of_another_kshim_is_not_asked_for(world: Members) -> None:
    world.groups.unload(world.groups.shard_for(G))
    assert world.beat("m", 0, "a").error_code == ErrorCode.NOT_COORDINATOR
    assert world.asked == []


# ---- topics change


def test_more_partitions_are_assigned_within_a_look(world: Members) -> None:
    epoch = world.beat("m", 0, "a").member_epoch
    world.partitions["a"] = 5
    world.topics.start()
    world.pass_s(LOOK_S)
    answer = world.beat("m", epoch)
    assert (answer.member_epoch, had(answer)) == (epoch + 1, {A: (0, 1, 2, 3, 4)})
    world.topics.stop()


def test_a_topic_that_is_created_is_assigned_within_a_look(world: Members) -> None:
    epoch = world.beat("m", 0, "a", "c").member_epoch
    world.upstream_topics["c"] = UUID(int=12)
    world.topics.start()
    world.pass_s(LOOK_S)
    assert had(world.beat("m", epoch)) == {A: (0, 1, 2), UUID(int=12): (0,)}
    world.topics.stop()


def test_a_deleted_topic_is_taken_away_after_two_looks(world: Members) -> None:
    epoch = world.beat("m", 0, "a", "b").member_epoch
    del world.upstream_topics["b"]
    world.topics.start()
    world.pass_s(LOOK_S)
    assert world.beat("m", epoch).assignment is None
    world.pass_s(LOOK_S)
    assert had(world.beat("m", epoch)) == {A: (0, 1, 2)}
    world.topics.stop()


def test_what_a_client_changes_through_kshim_is_noticed_soon(world: Members) -> None:
    epoch = world.beat("m", 0, "a", "c").member_epoch
    world.send(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest())
    world.partitions["a"] = 4
    world.upstream_topics["c"] = UUID(int=12)
    world.pass_s(AFTER_S[-1])
    answer = world.beat("m", epoch)
    assert had(answer) == {A: (0, 1, 2, 3), UUID(int=12): (0,)}


def test_looks_soon_after_a_request_take_no_topic_away(world: Members) -> None:
    """A broker that is behind may answer several of them."""
    epoch = world.beat("m", 0, "a", "b").member_epoch
    world.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest())
    del world.upstream_topics["b"]
    for _ in AFTER_S:
        world.pass_s(AFTER_S[-1])
    answer = world.beat("m", epoch)
    assert (answer.member_epoch, answer.assignment) == (epoch, None)


# ---- configs of groups

INTERVAL = "consumer.heartbeat.interval.ms"
SESSION = "consumer.session.timeout.ms"


def test_the_upstream_s_configs_of_a_group_count(world: Members) -> None:
    world.group_configs[G] = {INTERVAL: "7000", SESSION: "50000"}
    assert world.beat("m", 0, "a").heartbeat_interval_ms == 7000
    (member,) = world.groups.see(G).members
    assert member.session_timeout_ms == 50_000
    assert world.beat("m", 0, "a", group_id="other").heartbeat_interval_ms == 5000


def test_a_config_that_is_changed_through_kshim_counts_soon(world: Members) -> None:
    epoch = world.beat("m", 0, "a").member_epoch
    world.group_configs[G] = {INTERVAL: "7000"}
    world.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest())
    world.pass_s(AFTER_S[-1])
    assert world.beat("m", epoch).heartbeat_interval_ms == 7000
    del world.group_configs[G]
    world.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest())
    world.pass_s(AFTER_S[-1])
    assert world.beat("m", epoch).heartbeat_interval_ms == 5000


def test_a_config_that_is_changed_at_the_upstream_counts_within_a_look(world: Members) -> None:
    world.configs.start()
    epoch = world.beat("m", 0, "a").member_epoch
    world.group_configs[G] = {INTERVAL: "7000"}
    world.pass_s(LOOK_S)
    assert world.beat("m", epoch).heartbeat_interval_ms == 7000
    world.configs.stop()


def test_configs_of_groups_count_after_a_takeover(world: Members) -> None:
    world.group_configs[G] = {SESSION: "50000"}
    world.beat("m", 0, "a")
    successor = world.successor()
    successor.lead()
    successor.pass_s(0)
    (member,) = successor.groups.see(G).members
    assert member.session_timeout_ms == 50_000


def test_each_group_is_asked_for_once_and_forgotten_when_it_is_gone(world: Members) -> None:
    for number in range(3):
        world.beat(f"m{number}", 0, "a")
        world.pass_s(STALE_S)
    assert world.configs_asked == [G]
    for number in range(3):
        world.beat(f"m{number}", -1)
    world.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=(G,)))
    world.configs.start()
    world.pass_s(LOOK_S)
    assert not world.configs.is_known(G)
    world.configs.stop()


@pytest.mark.parametrize(
    ("error", "lines"),
    [(ErrorCode.INVALID_REQUEST, 0), (ErrorCode.GROUP_AUTHORIZATION_FAILED, 1)],
)
def test_an_upstream_that_does_not_describe_configs_of_groups(
    world: Members, caplog: pytest.LogCaptureFixture, error: ErrorCode, lines: int
) -> None:
    """It is older than Kafka 4.0, or does not let kshim read them."""
    world.configs_error = error
    assert world.beat("m", 0, "a").heartbeat_interval_ms == 5000
    assert len([each for each in caplog.messages if "configs of group" in each]) == lines


# ---- regular expressions


def test_an_expression_matches_all_but_kshim_s_own_topic(world: Members) -> None:
    world.upstream_topics[world.shards.topic] = UUID(int=99)
    epoch = world.beat("m", 0, subscribed_topic_regex=".*", topic_partitions=(), rebalance_timeout_ms=60_000)
    world.pass_s(0)
    assert had(world.beat("m", epoch.member_epoch)) == {A: (0, 1, 2), B: (0, 1)}


def test_an_expression_finds_a_topic_that_is_created(world: Members) -> None:
    world.every.start()
    joined = world.beat(
        "m", 0, subscribed_topic_regex="[ac]", topic_partitions=(), rebalance_timeout_ms=60_000
    )
    world.pass_s(0)
    answer = world.beat("m", joined.member_epoch)
    assert had(answer) == {A: (0, 1, 2)}
    world.upstream_topics["c"] = UUID(int=12)
    world.pass_s(LOOK_S)
    world.beat("m", answer.member_epoch)
    world.pass_s(0)
    assert had(world.beat("m", answer.member_epoch)) == {A: (0, 1, 2), UUID(int=12): (0,)}
    world.every.stop()


def test_all_topics_are_asked_for_only_while_expressions_are_used(world: Members) -> None:
    world.every.start()
    world.join("m", "a")
    world.pass_s(LOOK_S)
    assert all(each.topics is not None for each in world.asked)
    member = world.beat("r", 0, subscribed_topic_regex="b", topic_partitions=(), rebalance_timeout_ms=60_000)
    world.pass_s(0)
    assert set(world.every.by_name) == {"a", "b"}
    world.beat("r", -1)
    assert member.error_code == ErrorCode.NONE
    world.pass_s(LOOK_S)
    assert world.every.by_name == {}
    world.every.stop()


def test_topics_found_by_expression_are_named_when_a_group_is_described(world: Members) -> None:
    joined = world.beat("m", 0, subscribed_topic_regex="b", topic_partitions=(), rebalance_timeout_ms=60_000)
    world.pass_s(0)
    world.beat("m", joined.member_epoch)
    assert "b" not in world.topics.by_name
    (member,) = world.describe().members
    assert [each.topic_name for each in member.assignment.topic_partitions] == ["b"]


# ---- another process takes over


def test_members_keep_what_they_have_when_another_kshim_takes_over(world: Members) -> None:
    epoch = world.beat("m", 0, "a").member_epoch
    successor = world.successor()
    successor.lead()
    successor.pass_s(0)
    answer = successor.beat("m", epoch)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, epoch, None)


def test_a_shard_is_not_served_until_its_topics_are_known(world: Members) -> None:
    epoch = world.beat("m", 0, "a").member_epoch
    successor = world.successor()
    successor.is_down = True
    successor.lead()
    successor.pass_s(AGAIN_S)
    assert successor.beat("m", epoch).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    successor.is_down = False
    successor.pass_s(AGAIN_S)
    answer = successor.beat("m", epoch)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, epoch, None)


def test_a_shard_without_consumer_groups_is_served_though_the_upstream_is_down(world: Members) -> None:
    joined = world.join_classic("", "a")
    successor = world.successor()
    successor.is_down = True
    successor.lead()
    successor.pass_s(0)
    assert len(successor.groups.shards.leads) == SHARDS
    assert joined.error_code == ErrorCode.NONE


@pytest.mark.parametrize("knows", [0, 2])
def test_a_broker_that_is_behind_takes_nothing_from_members(world: Members, knows: int) -> None:
    """It does not know the topic yet, or not all of its partitions."""
    epoch = world.beat("m", 0, "a").member_epoch
    successor = world.successor()
    world.partitions["a"] = knows
    topic_id = world.upstream_topics["a"]
    if not knows:
        del world.upstream_topics["a"]
    successor.lead()
    successor.pass_s(0)
    assert successor.beat("m", epoch).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.upstream_topics["a"], world.partitions["a"] = topic_id, 3
    successor.pass_s(ABSENT_S)
    answer = successor.beat("m", epoch)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, epoch, None)


def test_a_topic_deleted_before_the_takeover_is_taken_away(world: Members) -> None:
    epoch = world.beat("m", 0, "a", "b").member_epoch
    successor = world.successor()
    del world.upstream_topics["b"]
    successor.lead()
    for _ in range(5):
        successor.pass_s(ABSENT_S)
    assert had(successor.beat("m", epoch)) == {A: (0, 1, 2)}


def test_expressions_go_on_when_another_kshim_takes_over(world: Members) -> None:
    joined = world.beat("m", 0, subscribed_topic_regex=".*", topic_partitions=(), rebalance_timeout_ms=60_000)
    world.pass_s(0)
    epoch = world.beat("m", joined.member_epoch).member_epoch
    successor = world.successor()
    world.upstream_topics["c"] = UUID(int=12)
    successor.lead()
    successor.pass_s(0)
    answer = successor.beat("m", epoch)
    assert (answer.member_epoch, answer.assignment) == (epoch, None)
    successor.pass_s(LOOK_S)
    successor.beat("m", epoch)
    successor.pass_s(0)
    assert had(successor.beat("m", epoch)) == {A: (0, 1, 2), B: (0, 1), UUID(int=12): (0,)}


def test_a_process_that_loses_the_shard_meanwhile_does_not_serve_it(world: Members) -> None:
    epoch = world.beat("m", 0, "a").member_epoch
    successor = world.successor()
    successor.is_down = True
    successor.lead()
    successor.groups.unload(successor.groups.shard_for(G))
    successor.is_down = False
    successor.pass_s(AGAIN_S)
    assert successor.beat("m", epoch).error_code == ErrorCode.NOT_COORDINATOR
    successor.groups.load(successor.groups.shard_for(G), Leader(HERE, 1))
    successor.pass_s(0)
    assert successor.beat("m", epoch).error_code == ErrorCode.NONE


# ---- conversions


def test_a_classic_member_keeps_topics_that_nobody_has_named_since_the_takeover(world: Members) -> None:
    """Else a member that joins would get partitions that the classic member still has."""
    joined = world.join_classic("", "a", "b")
    whole = TopicPartition(topic="a", partitions=(0, 1, 2)), TopicPartition(topic="b", partitions=(0, 1))
    world.sync(joined.member_id, joined.generation_id, *whole)
    successor = world.successor()
    successor.lead()
    successor.pass_s(0)
    assert successor.join("new", "a") == {}, "all partitions have an owner"
    members = {each.member_id: each for each in successor.describe().members}
    kept = members[joined.member_id].assignment.topic_partitions
    assert {each.topic_name: each.partitions for each in kept} == {"a": (0, 1, 2), "b": (0, 1)}


def test_a_group_is_not_converted_while_the_upstream_cannot_be_asked(world: Members) -> None:
    joined = world.join_classic("", "b")
    world.sync(joined.member_id, joined.generation_id, TopicPartition(topic="b", partitions=(0, 1)))
    world.is_down = True
    assert world.beat("new", 0, "a").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND, "it is still a classic group"


def test_a_classic_member_of_a_consumer_group_gets_topics_that_it_alone_names(world: Members) -> None:
    world.join("m", "a")
    joined = world.join_classic("", "b")
    assert joined.error_code == ErrorCode.NONE
    assert world.sync(joined.member_id, joined.generation_id) == [
        TopicPartition(topic="b", partitions=(0, 1))
    ]


def test_a_classic_member_waits_for_the_upstream(world: Members) -> None:
    world.join("m", "a")
    world.is_down = True
    joined = world.join_classic("", "b")
    assert joined.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# ---- both sides


def test_a_group_known_here_is_described_as_it_is_here(world: Members) -> None:
    """Its twin has the same name, and no members."""
    world.join("m", "a")
    world.kafka.groups[G] = Group()
    (classic,) = world.request(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=(G,))).groups
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    described = world.describe()
    assert (described.group_state, len(described.members)) == ("Stable", 1)
    world.kafka.groups[G] = Group("Stable", "consumer")
    assert world.describe().members == described.members


def test_a_classic_group_known_here_is_no_consumer_group_of_the_upstream(world: Members) -> None:
    world.join_classic("", "a")
    world.kafka.groups[G] = Group("Stable", "consumer")
    described = world.describe()
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described.error_message == "Group g is not a consumer group."


def test_a_consumer_group_of_the_upstream_is_described_by_it(world: Members) -> None:
    world.kafka.groups[G] = Group("Stable", "consumer")
    described = world.describe()
    assert (described.error_code, described.group_state, len(described.members)) == (0, "Stable", 1)


@pytest.mark.parametrize("group", [None, Group("Stable")])
def test_a_consumer_group_that_there_is_nowhere_is_not_found(world: Members, group: Group | None) -> None:
    if group is not None:
        world.kafka.groups[G] = group
    described = world.describe()
    assert (described.error_code, described.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g not found.",
    )


def test_an_upstream_without_the_protocol_has_no_consumer_groups(world: Members) -> None:
    world.kafka.serves_consumer_groups = False
    assert world.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_consumer_groups_of_both_sides_are_listed_with_their_type(world: Members) -> None:
    world.join("m", "a")
    world.kafka.groups = {G: Group(), "there": Group("Empty", "consumer"), "old": Group()}
    found = [
        each
        for at in (1, 2)
        for each in decode_response(
            ApiKey.LIST_GROUPS, 5, bytes(self_reply(world, ListGroupsRequest(types_filter=("consumer",)), at))
        )[1].groups
    ]
    assert sorted((each.group_id, each.group_state, each.group_type) for each in found) == [
        (G, "Stable", "consumer"),
        ("there", "Empty", "consumer"),
    ]


def self_reply(world: Members, request: Any, at: int) -> Any:
    answer = later(world.send(ApiKey.LIST_GROUPS, 5, request, at))
    for _ in range(20):
        advance(world.here)
    return result(answer)


def test_partitions_that_a_member_gives_up_are_owned_by_one_member_at_a_time(world: Members) -> None:
    first = world.beat("m1", 0, "a").member_epoch
    second = world.beat("m2", 0, "a")
    assert had(second) == {}
    answer = world.beat("m1", first)
    kept = had(answer)
    owned = tuple(TopicPartitions(topic_id=topic, partitions=parts) for topic, parts in kept.items())
    world.beat("m1", answer.member_epoch, topic_partitions=owned)
    got = had(world.beat("m2", second.member_epoch))
    assert sorted((*kept[A], *got[A])) == [0, 1, 2]
