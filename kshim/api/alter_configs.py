"""AlterConfigs (33): replace all configs that are set on topics and brokers (KIP-133).

Kafka deprecates it in favour of IncrementalAlterConfigs; older clients have only this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.cluster import Refusal
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, Operation
from kshim.requests import Broker, RequestContext
from kshim.requests.later import if_not_stored
from schemas.error_code import ErrorCode
from schemas.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The configs could not be stored.")


def alter_configs(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> Deferred[AlterConfigsResponse]:
    """Each resource is changed whole or refused; a change is durable, and in force, before the answer."""
    changes = [_change(resource) for resource in request.resources]

    def response(outcome: list[Refusal | None]) -> AlterConfigsResponse:
        return AlterConfigsResponse(responses=tuple(map(_response, changes, outcome)))

    def failed() -> AlterConfigsResponse:
        return response([NOT_STORED] * len(changes))

    altered = broker.cluster.alter_configs(changes, broker.node_id, validate_only=request.validate_only)
    return altered.addCallbacks(response, if_not_stored(failed))


def _change(resource: AlterConfigsResource) -> ConfigChange:
    return ConfigChange(
        resource.resource_type,
        resource.resource_name,
        tuple(ConfigOperation(each.name, Operation.SET, each.value) for each in resource.configs),
        replaces=True,
    )


def _response(change: ConfigChange, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
        resource_type=change.resource_type,
        resource_name=change.resource_name,
    )
