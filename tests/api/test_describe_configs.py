"""DescribeConfigs: names, values and sources of the configs of topics and of the broker."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.api.describe_configs import describe_configs
from kshim.kafka_configs.definition import ConfigType
from kshim.context import Broker
from schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResult
from schemas.error_code import ErrorCode
from tests.api.harness import ask, create, new_broker

TOPIC, BROKER = 2, 4
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


def test_a_topics_own_values_and_those_that_have_an_effect(broker: Broker) -> None:
    answer = describe(broker, TOPIC, "t")
    assert (answer.error_code, answer.error_message) == (0, "")
    assert values(answer) == {
        "cleanup.policy": ("compact", OF_TOPIC),
        "segment.ms": ("1000", OF_TOPIC),
        "delete.retention.ms": ("86400000", DEFAULT),
        "min.cleanable.dirty.ratio": ("0.5", DEFAULT),
        "max.message.bytes": ("1048588", DEFAULT),
        "message.timestamp.after.max.ms": ("3600000", DEFAULT),
        "message.timestamp.before.max.ms": ("9223372036854775807", DEFAULT),
        "message.timestamp.type": ("CreateTime", DEFAULT),
    }
    assert not any(config.read_only or config.is_sensitive for config in answer.configs)


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
    assert all(config.read_only for config in answer.configs)


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
    "other type": (32, "g", ErrorCode.INVALID_REQUEST, "Resource type 32 is not served."),
}


@pytest.mark.parametrize(("kind", "name", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(broker: Broker, kind: int, name: str, error: ErrorCode, message: str) -> None:
    answer = describe(broker, kind, name)
    assert (answer.error_code, answer.error_message, answer.configs) == (error, message, ())


def test_all_brokers_together_have_no_dynamic_configs(broker: Broker) -> None:
    assert describe(broker, BROKER, "").configs == ()
