"""AlterConfigs: a config that is not named goes back to its default. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import pytest

from kshim.answering import Broker
from schemas.error_code import ErrorCode
from tests.api.configs import BROKER, TOPIC, described, replace
from tests.api.harness import create, new_broker

DONE = (ErrorCode.NONE, None)


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    create(broker, "t", cleanup_policy="compact", segment_ms="1000")
    return broker


def test_the_configs_of_a_topic_are_replaced(broker: Broker) -> None:
    assert replace(broker, TOPIC, "t", [("retention.ms", "77")]) == DONE
    assert broker.cluster.topics["t"].configs == {"retention.ms": "77"}
    assert replace(broker, TOPIC, "t", [], validate_only=True) == DONE
    assert broker.cluster.topics["t"].configs == {"retention.ms": "77"}
    assert replace(broker, TOPIC, "t", []) == DONE
    assert broker.cluster.topics["t"].configs == {}


def test_the_configs_of_a_broker_are_replaced(broker: Broker) -> None:
    assert replace(broker, BROKER, "", [("log.retention.ms", "7"), ("message.max.bytes", "5")]) == DONE
    assert replace(broker, BROKER, "", [("log.retention.ms", "8")]) == DONE
    (config,) = described(broker, BROKER, "").values()
    assert (config.name, config.value) == ("log.retention.ms", "8")


@pytest.mark.parametrize(
    ("kind", "name", "configs", "error", "message"),
    [
        (TOPIC, "t", [("x", "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: x"),
        (
            *(TOPIC, "t", [("retention.ms", None)], ErrorCode.INVALID_REQUEST),
            "Null value not supported for : retention.ms",
        ),
        (
            *(TOPIC, "t", [("flush.ms", "1"), ("flush.ms", "2")], ErrorCode.INVALID_REQUEST),
            "Error due to duplicate config keys",
        ),
        (TOPIC, "nope", [], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        (8, "1", [], ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
        (
            *(BROKER, "1", [("log.dirs", "x")], ErrorCode.INVALID_REQUEST),
            "Cannot update these configs dynamically: [log.dirs]",
        ),
    ],
)
def test_refusals(
    broker: Broker,
    kind: int,
    name: str,
    configs: list[tuple[str, str | None]],
    error: ErrorCode,
    message: str,
) -> None:
    assert replace(broker, kind, name, configs) == (error, message)
    assert broker.cluster.topics["t"].configs == {"cleanup.policy": "compact", "segment.ms": "1000"}
