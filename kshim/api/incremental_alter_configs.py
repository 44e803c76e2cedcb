"""IncrementalAlterConfigs (44): set, unset, append to or subtract from configs, one by one (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.cluster import Refusal
from kshim.cluster.broker_loggers import alter_loggers
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, ResourceType
from kshim.requests import Broker, RequestContext
from kshim.requests.later import if_not_stored
from schemas.error_code import ErrorCode
from schemas.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The configs could not be stored.")


def incremental_alter_configs(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> Deferred[IncrementalAlterConfigsResponse]:
    """Each resource is changed whole or refused; a change is durable, and in force, before the answer."""
    changes = [_change(resource) for resource in request.resources]

    def with_loggers(outcome: list[Refusal | None]) -> list[Refusal | None]:
        return [
            alter_loggers(change, broker.node_id, validate_only=request.validate_only)
            if change.resource_type == ResourceType.LOGGER and refusal is None
            else refusal
            for change, refusal in zip(changes, outcome, strict=True)
        ]

    def response(outcome: list[Refusal | None]) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(responses=tuple(map(_response, changes, outcome)))

    def failed() -> IncrementalAlterConfigsResponse:
        return response([NOT_STORED] * len(changes))

    altered = broker.cluster.alter_configs(changes, broker.node_id, validate_only=request.validate_only)
    return altered.addCallback(with_loggers).addCallbacks(response, if_not_stored(failed))


def _change(resource: AlterConfigsResource) -> ConfigChange:
    return ConfigChange(
        resource.resource_type,
        resource.resource_name,
        tuple(ConfigOperation(each.name, each.config_operation, each.value) for each in resource.configs),
    )


def _response(change: ConfigChange, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
        resource_type=change.resource_type,
        resource_name=change.resource_name,
    )
