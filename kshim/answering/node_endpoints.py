"""The addresses of brokers to which an answer sends its client (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kshim.answering.broker import Broker
from kshim.callers import RequestContext

NodeEndpoint = TypeVar("NodeEndpoint")


def node_endpoints(
    broker: Broker,
    context: RequestContext,
    node_ids: Iterable[int],
    node_endpoint: Callable[[int, str, int], NodeEndpoint],
) -> tuple[NodeEndpoint, ...]:
    """`node_endpoint(node_id, host, port)` for each of these brokers that runs, once each."""
    return tuple(
        node_endpoint(node_id, endpoint.host, endpoint.port)
        for node_id in dict.fromkeys(node_ids)
        if (endpoint := broker.endpoint(context, node_id)) is not None
    )
