"""DescribeCluster (60): the brokers, for admin clients (KIP-700)."""

from __future__ import annotations

from kshim.answering import Broker
from kshim.answering.authorized_operations import CLUSTER_OPERATIONS
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2  # endpoint types (KIP-919)


def describe_cluster(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Describe the brokers. A request for controllers is refused, as clients cannot connect to any."""
    cluster = broker.cluster
    if request.endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER",
            cluster_id="",
        )
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
            cluster_id="",
        )
    node_ids = cluster.registered if request.include_fenced_brokers else cluster.running
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=tuple(_broker(broker, context, node_id) for node_id in node_ids),
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else -(1 << 31),
    )


def _broker(broker: Broker, context: RequestContext, node_id: int) -> DescribeClusterBroker:
    address = broker.address(context, node_id)
    return DescribeClusterBroker(
        broker_id=node_id,
        host=address.host,
        port=address.port,
        is_fenced=node_id not in broker.cluster.running,
    )
