"""All kshim in front of one upstream, as clients see them: brokers that lead nothing, but coordinate groups.

Some clients find a coordinator by its node id alone, among the brokers that they were told of. So each kshim
has a node id of its own, made of its addresses, and every other one tells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from kshim.configs.endpoint import Endpoint
from schemas.api_key import ApiKey
from schemas.messages.describe_cluster import DescribeClusterBroker
from schemas.messages.metadata import MetadataResponseBroker

FIRST_NODE_ID = 1 << 30
"""Kafka's own node ids are small."""


@dataclass(frozen=True, slots=True)
class Fellow:
    """One kshim."""

    node_id: int
    addresses: Mapping[str, Endpoint]
    """Where clients reach it, by the name of the listener."""


def new_fellow(addresses: Mapping[str, Endpoint]) -> Fellow:
    """The kshim with these addresses; it has the same node id wherever it is asked for."""
    text = ",".join(f"{name}={address}" for name, address in sorted(addresses.items()))
    return Fellow(FIRST_NODE_ID | crc32(text.encode()) & (FIRST_NODE_ID - 1), addresses)


def with_fellows(api_key: int, response: Any, fellows: Iterable[Fellow], listener_name: str) -> Any:
    """The answer to Metadata or DescribeCluster with all kshim among the brokers; any other as it is."""
    new = _BROKERS.get(api_key)
    if new is None:
        return response
    added = [
        new(fellow.node_id, address)
        for fellow in fellows
        if (address := fellow.addresses.get(listener_name)) is not None
    ]
    return replace(response, brokers=(*response.brokers, *added)) if added else response


def _in_metadata(node_id: int, at: Endpoint) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node_id, host=at.host, port=at.port)


def _in_describe_cluster(node_id: int, at: Endpoint) -> DescribeClusterBroker:
    return DescribeClusterBroker(broker_id=node_id, host=at.host, port=at.port)


_BROKERS: Mapping[int, Callable[[int, Endpoint], Any]] = {
    ApiKey.METADATA: _in_metadata,
    ApiKey.DESCRIBE_CLUSTER: _in_describe_cluster,
}
