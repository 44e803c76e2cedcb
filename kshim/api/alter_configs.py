"""AlterConfigs (33): replace all configs that are set on topics and brokers (KIP-133).

Kafka deprecates it in favour of IncrementalAlterConfigs; older clients have only this.
"""

from __future__ import annotations

from kshim.cluster import Refusal
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, Operation
from kshim.requests import Broker, RequestContext
from kshim.requests.alter import alter, results
from kshim.requests.later import Later, then
from schemas.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def alter_configs(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> Later[AlterConfigsResponse]:
    """Each resource is changed whole or refused; a change is durable, and in force, before the answer."""
    changes = [_change(resource) for resource in request.resources]

    def response(outcome: list[Refusal | None]) -> AlterConfigsResponse:
        return AlterConfigsResponse(responses=results(AlterConfigsResourceResponse, changes, outcome))

    return then(alter(broker, changes, validate_only=request.validate_only), response)


def _change(resource: AlterConfigsResource) -> ConfigChange:
    return ConfigChange(
        resource.resource_type,
        resource.resource_name,
        tuple(ConfigOperation(each.name, Operation.SET, each.value) for each in resource.configs),
        replaces=True,
    )
