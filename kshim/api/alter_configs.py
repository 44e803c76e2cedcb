"""AlterConfigs (33): replace all configs that are set on topics, brokers and groups (KIP-133).

Kafka has deprecated it in favour of IncrementalAlterConfigs, but older clients have only this API.
"""

from __future__ import annotations

from kshim.answering.alter import alter, cost_us, results
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, Operation
from kshim.turns.slices import in_slices
from schemas.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def alter_configs(
    broker: ClusterView, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Change each resource as a whole, or refuse it. A change is durable and in force before the answer."""
    changes = await in_slices(broker.rounds, context.turn, request.resources, _change, cost_us)
    outcome = await alter(broker, context, changes, validate_only=request.validate_only)
    return AlterConfigsResponse(responses=results(AlterConfigsResourceResponse, changes, outcome))


def _change(resource: AlterConfigsResource) -> ConfigChange:
    return ConfigChange(
        resource.resource_type,
        resource.resource_name,
        tuple(ConfigOperation(each.name, Operation.SET, each.value) for each in resource.configs),
        replaces=True,
    )
