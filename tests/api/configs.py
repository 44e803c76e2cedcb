"""Short forms of requests that change and describe configs, and of their answers."""

from __future__ import annotations

from collections.abc import Sequence

from kshim.answering import Broker
from kshim.api.alter_configs import alter_configs
from kshim.api.describe_configs import describe_configs
from kshim.api.incremental_alter_configs import incremental_alter_configs
from schemas.error_code import ErrorCode
from schemas.messages import alter_configs as legacy
from schemas.messages import incremental_alter_configs as incremental
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from tests.api.harness import ask

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)

Resource = tuple[int, str, Sequence[tuple[str, int, str | None]]]
Answer = tuple[ErrorCode, str | None]


def incremental_request(
    *resources: Resource, validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    incremental.AlterableConfig(name=config, config_operation=operation, value=value)
                    for config, operation, value in configs
                ),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


def alter(broker: Broker, *resources: Resource, validate_only: bool = False) -> list[Answer]:
    """IncrementalAlterConfigs; returns the error code and message of each resource."""
    request = incremental_request(*resources, validate_only=validate_only)
    answer = ask(incremental_alter_configs, broker, request, 1)
    assert [(each.resource_type, each.resource_name) for each in answer.responses] == [
        (kind, name) for kind, name, _ in resources
    ]
    return [(ErrorCode(each.error_code), each.error_message) for each in answer.responses]


def replace(
    broker: Broker,
    kind: int,
    name: str,
    configs: Sequence[tuple[str, str | None]],
    *,
    validate_only: bool = False,
) -> Answer:
    """AlterConfigs of one resource."""
    resource = legacy.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(legacy.AlterableConfig(name=config, value=value) for config, value in configs),
    )
    request = legacy.AlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (answer,) = ask(alter_configs, broker, request, 2).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return ErrorCode(answer.error_code), answer.error_message


def described(broker: Broker, kind: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
    """DescribeConfigs with synonyms, as configs by name."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    (answer,) = ask(describe_configs, broker, request, 4).results
    assert answer.error_code == 0, answer
    return {config.name: config for config in answer.configs}


def value(broker: Broker, kind: int, name: str, config: str) -> tuple[str | None, int]:
    """The value and source of a config."""
    found = described(broker, kind, name)[config]
    return found.value, found.config_source


def synonyms(config: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in config.synonyms]
