"""ListConfigResources (74): the resources that may have configs (KIP-1142).

v0 asks for client metrics only. They are not served, so the list is empty.
"""

from __future__ import annotations

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster.config_changes import ResourceType
from schemas.error_code import ErrorCode
from schemas.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

FIRST_VERSION_WITH_TYPES = 1
CLIENT_METRICS = 16
OF_KAFKA = (*ResourceType, CLIENT_METRICS)


def list_config_resources(
    broker: ClusterView, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List all topics, all running brokers, their loggers, and the groups whose configs were set.

    If no type is requested, all types are meant.
    """
    asked = request.resource_types or OF_KAFKA
    if context.api_version < FIRST_VERSION_WITH_TYPES:
        asked = (CLIENT_METRICS,)
    if not set(asked) <= set(OF_KAFKA):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    brokers = list(map(str, broker.cluster.running))
    names = {
        ResourceType.TOPIC: broker.cluster.topics,
        ResourceType.BROKER: brokers,
        ResourceType.LOGGER: brokers,
        ResourceType.GROUP: broker.cluster.group_configs,
    }
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=each)
            for each, known in names.items()
            if each in asked
            for name in known
        )
    )
