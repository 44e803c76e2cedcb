"""Who leads a partition, and what a client is told that asks another broker or believes in another epoch.

A client names the leader epoch it knows of (KIP-320), and where it is sent away it is told at once where to
go (KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kshim.cluster import Partition
from kshim.context import Broker, RequestContext
from schemas.error_code import ErrorCode

NO_EPOCH = -1

NodeEndpoint = TypeVar("NodeEndpoint")


def fault_in_leadership(
    broker: Broker, partition: Partition, current_leader_epoch: int = NO_EPOCH
) -> ErrorCode:
    """Why this broker does not answer for `partition` to a client that knows of `current_leader_epoch`.

    NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH (the client is behind), UNKNOWN_LEADER_EPOCH (it is ahead), or
    NONE. A client that names no epoch is not fenced.
    """
    if partition.leader != broker.node_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if current_leader_epoch in (NO_EPOCH, partition.leader_epoch):
        return ErrorCode.NONE
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def node_endpoints(
    broker: Broker,
    context: RequestContext,
    node_ids: Iterable[int],
    node_endpoint: Callable[[int, str, int], NodeEndpoint],
) -> tuple[NodeEndpoint, ...]:
    """Where the brokers of these ids are reached, each once: `node_endpoint(node_id, host, port)`."""
    return tuple(
        node_endpoint(node_id, endpoint.host, endpoint.port)
        for node_id in dict.fromkeys(node_ids)
        if (endpoint := broker.endpoint(context, node_id)) is not None
    )
