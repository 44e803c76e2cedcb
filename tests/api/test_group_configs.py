"""Configs of groups: how they are set, described, refused and kept. The facts are Apache Kafka 4.4's."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.list_config_resources import list_config_resources
from kshim.coordination.group_configs import ValuesOfGroups
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.list_config_resources import ListConfigResourcesRequest
from tests.api.configs import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    SUBTRACT,
    alter,
    described,
    replace,
    synonyms,
    value,
)
from tests.api.groups import Groups
from tests.api.harness import ask, create, new_broker

GROUP = 32
STATIC, DEFAULT, OF_GROUP = 4, 5, 8
SESSION, INTERVAL, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
DONE = [(ErrorCode.NONE, None)]
LOW = {"group_consumer_min_session_timeout_ms": 6_000, "group_consumer_min_heartbeat_interval_ms": 1_000}


@pytest.fixture
def broker() -> Broker:
    return new_broker()


def set_configs(broker: Broker, group_id: str, **more: Any) -> list[Any]:
    operations = [(name, SET, text) for name, text in more.pop("configs").items()]
    return alter(broker, (GROUP, group_id, operations), **more)


def listed(broker: Broker, *types: int) -> set[str]:
    answer = ask(list_config_resources, broker, ListConfigResourcesRequest(resource_types=types), 1)
    return {each.resource_name for each in answer.config_resources if each.resource_type == GROUP}


def test_182_set_and_delete(broker: Broker) -> None:
    assert set_configs(broker, "g", configs={SESSION: " 46000 ", INTERVAL: "6000"}) == DONE
    assert value(broker, GROUP, "g", SESSION) == ("46000", OF_GROUP)
    assert listed(broker) == listed(broker, GROUP) == {"g"}
    assert listed(broker, BROKER) == set()
    assert alter(broker, (GROUP, "g", [(SESSION, DELETE, None), ("no.such", DELETE, None)])) == DONE
    assert value(broker, GROUP, "g", SESSION) == ("45000", DEFAULT)
    assert value(broker, GROUP, "g", INTERVAL) == ("6000", OF_GROUP)
    assert value(broker, GROUP, "other", INTERVAL) == ("5000", DEFAULT)
    assert replace(broker, GROUP, "g", [(SESSION, "47000")]) == DONE[0]
    assert value(broker, GROUP, "g", INTERVAL) == ("5000", DEFAULT)
    assert replace(broker, GROUP, "g", []) == DONE[0]
    assert listed(broker) == set()


def test_only_validated(broker: Broker) -> None:
    assert set_configs(broker, "g", configs={SESSION: "46000"}, validate_only=True) == DONE
    assert listed(broker) == set()


@pytest.mark.parametrize("group_id", [" ", 'é\n"x', "y" * 3000])
def test_any_name_is_kept_over_a_restart(group_id: str) -> None:
    broker = new_broker()
    assert set_configs(broker, group_id, configs={SESSION: "46000"}) == DONE

    class Again:
        log, metadata = broker.log, broker.cluster._metadata

    later = new_broker(Again())
    assert listed(later) == {group_id}
    assert value(later, GROUP, group_id, SESSION) == ("46000", OF_GROUP)
    assert replace(later, GROUP, group_id, []) == DONE[0]
    assert listed(new_broker(Again())) == set()


class TestDescribed:
    def test_the_broker_s_configs_are_synonyms(self) -> None:
        given = {"group.consumer.session.timeout.ms": "50000"}
        broker = new_broker(given=given, group_consumer_session_timeout_ms=50_000)
        of_broker = [
            ("group.consumer.session.timeout.ms", "50000", STATIC),
            ("group.consumer.session.timeout.ms", "45000", DEFAULT),
        ]
        assert synonyms(described(broker, GROUP, "g")[SESSION]) == of_broker
        set_configs(broker, "g", configs={SESSION: "46000"})
        assert synonyms(described(broker, GROUP, "g")[SESSION]) == [(SESSION, "46000", OF_GROUP), *of_broker]

    def test_some_have_no_synonym_at_the_broker(self, broker: Broker) -> None:
        level = "share.isolation.level"
        assert synonyms(described(broker, GROUP, "g")[level]) == [(level, "read_uncommitted", DEFAULT)]

    def test_internal_ones_are_listed_once_they_are_set(self, broker: Broker) -> None:
        name = "consumer.assignor.offload.enable"
        assert len(described(broker, GROUP, "g")) == 21
        set_configs(broker, "g", configs={name: " FALSE "})
        config = described(broker, GROUP, "g")[name]
        assert synonyms(config) == [(name, " FALSE ", OF_GROUP), (f"group.{name}", "true", DEFAULT)]


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "unknown": ({"no.such": "1", SESSION: "x"}, "Unknown group config name: no.such"),
    "no number": ({SESSION: "x"}, f"Invalid value x for configuration {SESSION}: Not a number of type INT"),
    "not positive": (
        {INTERVAL: "0"},
        f"Invalid value 0 for configuration {INTERVAL}: Value must be at least 1",
    ),
    "below": ({SESSION: "44999"}, f"{SESSION} must be in the range 45000 to 60000 inclusive."),
    "above": ({ASSIGNMENT: "15001"}, f"{ASSIGNMENT} must be in the range 0 to 15000 inclusive."),
    "interval first": (
        {SESSION: "1", INTERVAL: "1"},
        f"{INTERVAL} must be in the range 5000 to 15000 inclusive.",
    ),
    "standby": (
        {"streams.num.standby.replicas": "3"},
        "streams.num.standby.replicas must be less than or equal to 2",
    ),
    "tags before all": (
        {"streams.rack.aware.assignment.tags": "a, a", SESSION: "x"},
        "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
    ),
    "empty tag": (
        {"streams.rack.aware.assignment.tags": "a,,b"},
        "Configuration 'streams.rack.aware.assignment.tags' values must not be empty.",
    ),
    "assignor": (
        {"streams.assignor.name": "x", "errors.deadletterqueue.topic.name": "__x"},
        "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky].",
    ),
    "queue": (
        {"errors.deadletterqueue.topic.name": " __x"},
        "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
    ),
    "reset": (
        {"share.auto.offset.reset": "by_duration:-PT1H"},
        "Invalid value by_duration:-PT1H for configuration share.auto.offset.reset: Invalid value "
        "`by_duration:-PT1H` for configuration share.auto.offset.reset. The value must be either 'earliest', "
        "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    ),
}


@pytest.mark.parametrize(("configs", "message"), REFUSED.values(), ids=REFUSED)
def test_181_refused_values(broker: Broker, configs: dict[str, str], message: str) -> None:
    assert set_configs(broker, "g", configs=configs) == [(ErrorCode.INVALID_CONFIG, message)]
    assert listed(broker) == set()


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_nothing_is_appended_not_even_to_a_list(broker: Broker, operation: int) -> None:
    tags = "streams.rack.aware.assignment.tags"
    verb = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}[operation]
    message = f"Can't {verb} to key {tags} because its type is not LIST."
    assert alter(broker, (GROUP, "", [(tags, operation, "a")])) == [(ErrorCode.INVALID_CONFIG, message)]


def test_refused_requests(broker: Broker) -> None:
    refused = ErrorCode.INVALID_REQUEST
    assert set_configs(broker, "", configs={"no.such": "1"}) == [
        (refused, "Default group resources are not allowed.")
    ]
    assert alter(broker, (GROUP, "g", [(SESSION, SET, None)])) == [
        (refused, f"Null value not supported for : {SESSION}")
    ]
    twice = (refused, "Each resource must appear at most once.")
    assert alter(broker, (GROUP, "a", []), (GROUP, "b", []), (GROUP, "a", [])) == [twice, DONE[0], twice]


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_181_a_session_is_longer_than_the_interval(kind: str) -> None:
    broker = new_broker(**LOW, given={f"group.{kind}.min.session.timeout.ms": "5000"})
    session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    ms = "6000" if kind == "consumer" else "5000"
    faulty = {session: ms, interval: ms}
    refused = [(ErrorCode.INVALID_CONFIG, f"{session} must be greater than {interval}")]
    assert set_configs(broker, "g", configs=faulty) == refused
    assert set_configs(broker, "g", configs={**faulty, session: str(int(ms) + 1)}) == DONE


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_the_brokers_assignment_interval_has_bounds(broker: Broker, kind: str) -> None:
    name = f"group.{kind}.assignment.interval.ms"
    bound = f"group.{kind}.max.assignment.interval.ms"
    refused = [(ErrorCode.INVALID_REQUEST, f"{name} must be less than or equal to {bound}")]
    assert alter(broker, (BROKER, "1", [(name, SET, "15001")])) == refused
    assert alter(broker, (BROKER, "1", [(name, SET, "15000")])) == DONE
    assert value(broker, GROUP, "g", f"{kind}.assignment.interval.ms") == ("15000", 2)


class TestValues:
    def test_out_of_the_bounds_of_a_later_start(self) -> None:
        broker = new_broker(**LOW)
        assert set_configs(broker, "g", configs={SESSION: "7000", INTERVAL: "2000"}) == DONE
        assert broker.cluster.group_values("g", 1)[:2] == (7_000, 2_000)

        class Again:
            log, metadata = broker.log, broker.cluster._metadata

        later = new_broker(Again())
        assert later.cluster.group_values("g", 1)[:2] == (45_000, 5_000)
        assert value(later, GROUP, "g", SESSION) == ("7000", OF_GROUP)
        message = f"{INTERVAL} must be in the range 5000 to 15000 inclusive."
        other = {"share.session.timeout.ms": "50000"}
        assert set_configs(later, "g", configs=other) == [(ErrorCode.INVALID_CONFIG, message)]

    def test_a_broker_s_interval_that_is_set_at_run_time(self, broker: Broker) -> None:
        assert broker.cluster.group_values("g", 1).assignment_interval_ms == 0
        assert alter(broker, (BROKER, "", [("group.consumer.assignment.interval.ms", SET, "2000")])) == DONE
        assert broker.cluster.group_values("g", 1).assignment_interval_ms == 2_000
        assert set_configs(broker, "g", configs={ASSIGNMENT: "500"}) == DONE
        assert broker.cluster.group_values("g", 1).assignment_interval_ms == 500

    def test_a_broker_s_own_interval_acts_on_the_groups_that_it_coordinates(self) -> None:
        broker = new_broker(brokers=2)
        name = "group.consumer.assignment.interval.ms"
        assert alter(dataclasses.replace(broker, node_id=2), (BROKER, "2", [(name, SET, "3000")])) == DONE
        configs = ValuesOfGroups(broker.cluster.group_values, 1)
        assert [configs.at(node).assignment_interval_ms("g") for node in (1, 2)] == [0, 3_000]
        assert set_configs(broker, "g", configs={SESSION: "46000"}) == DONE
        assert [configs.at(node).assignment_interval_ms("g") for node in (1, 2)] == [0, 3_000]
        assert set_configs(broker, "g", configs={ASSIGNMENT: "500"}) == DONE
        assert [configs.at(node).assignment_interval_ms("g") for node in (1, 2)] == [500, 500]


def test_40_members_get_the_group_s_interval_with_their_next_answer() -> None:
    groups = Groups()
    create(groups.broker, "t", 1)

    def interval_ms(epoch: int, **fields: Any) -> int:
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **fields)
        answer = groups.ask(request)
        assert answer.error_code == 0
        return int(answer.heartbeat_interval_ms)

    joins = {"rebalance_timeout_ms": 5_000, "topic_partitions": (), "subscribed_topic_names": ("t",)}
    assert interval_ms(0, **joins) == 5_000
    assert set_configs(groups.broker, "g", configs={INTERVAL: "6000"}) == DONE
    assert interval_ms(2) == 6_000
    assert alter(groups.broker, (GROUP, "g", [(INTERVAL, DELETE, None)])) == DONE
    assert interval_ms(2) == 5_000
