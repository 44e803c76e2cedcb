"""ListConfigResources: topics and brokers. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import pytest

from kshim.answering import Broker
from kshim.api.list_config_resources import list_config_resources
from schemas.error_code import ErrorCode
from schemas.messages.list_config_resources import ListConfigResourcesRequest
from tests.api.harness import ask, create, new_broker

TOPICS = {(2, "t"), (2, "__consumer_offsets")}
LOGGERS = {(8, "1"), (8, "2"), (8, "3")}
BROKERS = {(4, "1"), (4, "2"), (4, "3")}


@pytest.fixture
def broker() -> Broker:
    broker = new_broker(brokers=3)
    create(broker, "t")
    return broker


@pytest.mark.parametrize(
    ("version", "types", "expected"),
    [
        (1, (), TOPICS | BROKERS | LOGGERS),
        (1, (2,), TOPICS),
        (1, (4, 4), BROKERS),
        (1, (8,), LOGGERS),
        (1, (16, 32), set()),
        (0, (), set()),
    ],
)
def test_what_has_configs(
    broker: Broker, version: int, types: tuple[int, ...], expected: set[tuple[int, str]]
) -> None:
    answer = ask(list_config_resources, broker, ListConfigResourcesRequest(resource_types=types), version)
    assert answer.error_code == 0
    assert {(each.resource_type, each.resource_name) for each in answer.config_resources} == expected


def test_an_unknown_type(broker: Broker) -> None:
    answer = ask(list_config_resources, broker, ListConfigResourcesRequest(resource_types=(2, 3)), 1)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())
