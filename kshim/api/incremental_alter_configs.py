"""IncrementalAlterConfigs (44): set, unset, append to or subtract from configs, one by one (KIP-339)."""

from __future__ import annotations

from kshim.answering.alter import alter, cost_us, results
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.cluster.broker_loggers import alter_loggers
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, ResourceType
from kshim.turns.slices import in_slices
from schemas.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def incremental_alter_configs(
    broker: ClusterView, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change each resource as a whole, or refuse it. A change is durable and in force before the answer."""

    def with_loggers(change: ConfigChange, refusal: Refusal | None) -> Refusal | None:
        if change.resource_type != ResourceType.LOGGER or refusal is not None:
            return refusal
        return alter_loggers(change, broker.node_id, validate_only=request.validate_only)

    changes = await in_slices(broker.rounds, context.turn, request.resources, _change, cost_us)
    outcome = await alter(broker, context, changes, validate_only=request.validate_only)
    all_outcomes = map(with_loggers, changes, outcome)
    return IncrementalAlterConfigsResponse(
        responses=results(AlterConfigsResourceResponse, changes, all_outcomes)
    )


def _change(resource: AlterConfigsResource) -> ConfigChange:
    return ConfigChange(
        resource.resource_type,
        resource.resource_name,
        tuple(ConfigOperation(each.name, each.config_operation, each.value) for each in resource.configs),
    )
