"""DescribeConfigs: names, values and sources of the configs of topics and of the broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.describe_configs import describe_configs
from kshim.configs.definition import ConfigType
from kshim.configs.topics import TOPIC_CONFIGS
from schemas.error_code import ErrorCode
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from tests.api.harness import ask, create, new_broker

TOPIC, BROKER, LOGGER = 2, 4, 8
OF_TOPIC, STATIC, DEFAULT = 1, 4, 5


@pytest.fixture
def broker() -> Broker:
    broker = new_broker(num_partitions=3)
    create(broker, "t", cleanup_policy="compact", segment_ms="1000")
    return broker


def describe(
    broker: Broker, kind: int, name: str, keys: tuple[str, ...] | None = None, **more: Any
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=(resource,), **more)
    (answer,) = ask(describe_configs, broker, request, 4).results
    assert isinstance(answer, DescribeConfigsResult)
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer


def values(answer: DescribeConfigsResult) -> dict[str, tuple[str | None, int]]:
    return {config.name: (config.value, config.config_source) for config in answer.configs}


def test_a_topics_own_values_among_all_that_kafka_has(broker: Broker) -> None:
    answer = describe(broker, TOPIC, "t")
    assert (answer.error_code, answer.error_message) == (0, "")
    assert [config.name for config in answer.configs] == [
        name for name, row in TOPIC_CONFIGS.items() if not row.internal
    ]
    found = values(answer)
    own = {name: value for name, (value, source) in found.items() if source == OF_TOPIC}
    assert own == {"cleanup.policy": "compact", "segment.ms": "1000"}
    assert all(source == DEFAULT for name, (_, source) in found.items() if name not in own)
    assert found["retention.ms"] == ("604800000", DEFAULT)
    assert not any(config.read_only or config.is_sensitive for config in answer.configs)


def test_what_has_no_effect_says_so(broker: Broker) -> None:
    keys = ("segment.ms", "cleanup.policy", "num.io.threads", "num.partitions")
    told = {
        config.name: "no effect" in (config.documentation or "")
        for kind, name in ((TOPIC, "t"), (BROKER, "1"))
        for config in describe(broker, kind, name, keys, include_documentation=True).configs
    }
    assert told == {
        "segment.ms": True,
        "cleanup.policy": False,
        "num.io.threads": True,
        "num.partitions": False,
    }


def test_a_topic_s_default_may_have_been_given_in_other_units() -> None:
    """Kafka lists synonyms only from the first one on that has the same unit."""
    broker = new_broker(given={"log.retention.minutes": "2", "log.roll.hours": "3"})
    create(broker, "t")
    answer = describe(broker, TOPIC, "t", ("retention.ms", "segment.ms"), include_synonyms=True)
    assert values(answer) == {"retention.ms": ("120000", DEFAULT), "segment.ms": ("10800000", DEFAULT)}
    assert [config.synonyms for config in answer.configs] == [(), ()]


def test_what_has_no_effect_may_be_anything() -> None:
    broker = new_broker(given={"log.roll.hours": "x", "log.segment.bytes": "5", "log.preallocate": "true"})
    create(broker, "t")
    answer = values(describe(broker, TOPIC, "t", ("segment.ms", "segment.bytes", "preallocate")))
    assert answer == {
        "segment.ms": ("604800000", DEFAULT),
        "segment.bytes": ("1073741824", DEFAULT),
        "preallocate": ("true", STATIC),
    }
    assert values(describe(broker, BROKER, "1"))["log.roll.hours"] == ("168", DEFAULT)


def test_values_are_shown_as_kafka_spells_them(broker: Broker) -> None:
    create(broker, "u", cleanup_policy=" delete , compact", preallocate="TRUE", retention_ms=" +5 ")
    answer = values(describe(broker, TOPIC, "u", ("cleanup.policy", "preallocate", "retention.ms")))
    assert {name: value for name, (value, _) in answer.items()} == {
        "cleanup.policy": "delete,compact",
        "preallocate": "true",
        "retention.ms": "5",
    }


def test_what_the_broker_was_configured_for_reaches_its_topics() -> None:
    broker = new_broker(message_max_bytes=5000)
    create(broker, "t")
    answer = describe(broker, TOPIC, "t", ("max.message.bytes",), include_synonyms=True)
    assert values(answer) == {"max.message.bytes": ("5000", STATIC)}
    synonyms = [(item.name, item.value, item.source) for item in answer.configs[0].synonyms]
    assert synonyms == [("message.max.bytes", "5000", STATIC), ("message.max.bytes", "1048588", DEFAULT)]


def test_keys_synonyms_types_and_documentation(broker: Broker) -> None:
    keys = ("cleanup.policy", "nonsense", "message.timestamp.type")
    answer = describe(broker, TOPIC, "t", keys, include_synonyms=True, include_documentation=True)
    policy, timestamp_type = answer.configs
    assert (policy.name, policy.config_type) == ("cleanup.policy", ConfigType.LIST)
    assert [(item.name, item.value, item.source) for item in policy.synonyms] == [
        ("cleanup.policy", "compact", OF_TOPIC),
        ("log.cleanup.policy", "delete", DEFAULT),
    ]
    assert "compact" in (policy.documentation or "")
    assert timestamp_type.name == "message.timestamp.type"
    plain = describe(broker, TOPIC, "t", ("cleanup.policy",)).configs[0]
    assert (plain.synonyms, plain.documentation) == ((), None)


def test_no_keys_are_all_keys(broker: Broker) -> None:
    assert values(describe(broker, TOPIC, "t", ())) == values(describe(broker, TOPIC, "t"))


def test_the_internal_topic_is_compacted(broker: Broker) -> None:
    answer = values(describe(broker, TOPIC, "__consumer_offsets"))
    assert answer["cleanup.policy"] == ("compact", OF_TOPIC)
    assert answer["compression.type"] == ("producer", OF_TOPIC)
    assert answer["segment.bytes"] == ("104857600", OF_TOPIC)


def test_the_broker(broker: Broker) -> None:
    answer = describe(broker, BROKER, "1", include_synonyms=True)
    by_name = {config.name: config for config in answer.configs}
    partitions = by_name["num.partitions"]
    assert (partitions.value, partitions.config_source, partitions.config_type) == (
        "3",
        STATIC,
        ConfigType.INT,
    )
    assert [(item.value, item.source) for item in partitions.synonyms] == [("3", STATIC), ("1", DEFAULT)]
    creation = by_name["auto.create.topics.enable"]
    assert (creation.value, creation.config_source, creation.config_type) == (
        "true",
        DEFAULT,
        ConfigType.BOOLEAN,
    )
    assert by_name["log.message.timestamp.type"].config_type is ConfigType.STRING
    assert by_name["log.retention.ms"].value is None
    assert (partitions.read_only, by_name["log.retention.ms"].read_only) == (True, False)
    assert by_name["node.id"].value == by_name["broker.id"].value == "1"
    assert by_name["listeners"].value == "PLAINTEXT://127.0.0.1:9092"


def test_what_the_user_gave_is_static_and_passwords_are_not_shown() -> None:
    given = {"num.io.threads": "4", "ssl.key.password": "secret", "num.partitions": "1"}
    given |= {"listener.name.outside.ssl.key.password": "secret", "http.token": "secret"}
    broker = new_broker(given=given)
    by_name = {config.name: config for config in describe(broker, BROKER, "1", include_synonyms=True).configs}
    assert (by_name["num.io.threads"].value, by_name["num.io.threads"].config_source) == ("4", STATIC)
    assert by_name["num.partitions"].config_source == STATIC
    for name in ("ssl.key.password", "listener.name.outside.ssl.key.password", "http.token"):
        password = by_name[name]
        assert (password.value, password.is_sensitive, password.config_source) == (None, True, STATIC)
        assert password.config_type == ConfigType.PASSWORD or name == "http.token"
        assert {synonym.value for synonym in password.synonyms} == {None}


REFUSED = {
    "unknown topic": (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
    "bad topic": (
        TOPIC,
        "",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: the empty string is not allowed",
    ),
    "other broker": (
        BROKER,
        "2",
        ErrorCode.INVALID_REQUEST,
        "Unexpected broker id, expected 1 or empty string, but received 2",
    ),
    "no number": (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
    "other type": (16, "m", ErrorCode.INVALID_REQUEST, "Resource type 16 is not served."),
    "no group": (32, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
}


@pytest.mark.parametrize(("kind", "name", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(broker: Broker, kind: int, name: str, error: ErrorCode, message: str) -> None:
    answer = describe(broker, kind, name)
    assert (answer.error_code, answer.error_message, answer.configs) == (error, message, ())


@pytest.mark.parametrize("unknown", [-1, 0, 1, 3, 5, 99])
def test_nothing_is_described_beside_a_type_that_kafka_does_not_know(broker: Broker, unknown: int) -> None:
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((TOPIC, "t"), (unknown, "x"), (BROKER, "7"))
    )
    answers = ask(describe_configs, broker, DescribeConfigsRequest(resources=resources), 4).results
    assert [(answer.resource_type, answer.resource_name) for answer in answers] == [
        (TOPIC, "t"),
        (unknown, "x"),
        (BROKER, "7"),
    ]
    assert {answer.error_code for answer in answers} == {ErrorCode.INVALID_REQUEST}
    assert len({answer.error_message for answer in answers}) == 1
    assert not any(answer.configs for answer in answers)


def test_the_number_of_a_broker_has_no_default(broker: Broker) -> None:
    (node_id,) = describe(broker, BROKER, "1", ("node.id",), include_synonyms=True).configs
    assert [(item.value, item.source) for item in node_id.synonyms] == [("1", STATIC)]


@pytest.mark.parametrize("documentation", [True, False])
def test_loggers_have_an_empty_documentation(broker: Broker, documentation: bool) -> None:
    (root,) = describe(broker, LOGGER, "1", ("root",), include_documentation=documentation).configs
    assert root.documentation == ""


def test_each_broker_has_a_number_and_a_port_of_its_own() -> None:
    broker = new_broker(brokers=2, advertised_listeners="kafka.example:19092")
    found = values(describe(replace(broker, node_id=2), BROKER, "2"))
    assert (found["node.id"][0], found["broker.id"][0]) == ("2", "2")
    assert found["listeners"] == ("PLAINTEXT://127.0.0.1:9093", STATIC)
    assert found["advertised.listeners"] == ("PLAINTEXT://kafka.example:19093", STATIC)


def test_all_brokers_together_have_no_dynamic_configs(broker: Broker) -> None:
    assert describe(broker, BROKER, "").configs == ()
