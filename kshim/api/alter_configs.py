"""AlterConfigs (33): replace all configs that are set on topics and brokers (KIP-133).

Kafka has deprecated it in favour of IncrementalAlterConfigs, but older clients have only this API.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kshim.answering.alter import alter, cost_us, results
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, Operation
from kshim.turns.later import Later, then
from kshim.turns.slices import in_slices
from schemas.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def alter_configs(
    broker: ClusterView, context: RequestContext, request: AlterConfigsRequest
) -> Later[AlterConfigsResponse]:
    """Change each resource as a whole, or refuse it. A change is durable and in force before the answer."""

    def change(changes: Sequence[ConfigChange]) -> Later[AlterConfigsResponse]:
        def response(outcome: Iterable[Refusal | None]) -> AlterConfigsResponse:
            return AlterConfigsResponse(responses=results(AlterConfigsResourceResponse, changes, outcome))

        return then(alter(broker, context, changes, validate_only=request.validate_only), response)

    return then(in_slices(broker.rounds, context.turn, request.resources, _change, cost_us), change)


def _change(resource: AlterConfigsResource) -> ConfigChange:
    return ConfigChange(
        resource.resource_type,
        resource.resource_name,
        tuple(ConfigOperation(each.name, Operation.SET, each.value) for each in resource.configs),
        replaces=True,
    )
