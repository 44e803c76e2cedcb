"""All kshim in front of one upstream, as clients see them: brokers that lead nothing, but coordinate groups.

Some clients find a coordinator by its node id alone, among the brokers that they were told of. So each kshim
has a node id of its own, made of its addresses, and every other one tells of it.

A client asks for the brokers again after minutes. If it asks while a kshim is restarted, and the one it is
connected to goes next, it must not know that one alone. So those that have gone are told of for a while, but
only to who asks for topics: tools that ask for brokers want something of each, and would wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from kshim.configs.endpoint import Endpoint
from schemas.api_key import ApiKey
from schemas.messages.describe_cluster import DescribeClusterBroker
from schemas.messages.metadata import MetadataResponseBroker

FIRST_NODE_ID = 1 << 30
"""Kafka's own node ids are small."""
REMEMBERED_S = 300.0
"""How long clients are told of a kshim that has gone: as long as they keep what they know, by default."""


@dataclass(frozen=True, slots=True)
class Fellow:
    """One kshim."""

    node_id: int
    addresses: Mapping[str, Endpoint]
    """Where clients reach it, by the name of the listener."""

    @property
    def is_reached(self) -> bool:
        """Whether the clients of another kshim can connect to it."""
        return not any(address.is_nowhere for address in self.addresses.values())


def new_fellow(addresses: Mapping[str, Endpoint]) -> Fellow:
    """The kshim with these addresses; it has the same node id wherever it is asked for."""
    text = ",".join(f"{name}={address}" for name, address in sorted(addresses.items()))
    return Fellow(FIRST_NODE_ID | crc32(text.encode()) & (FIRST_NODE_ID - 1), addresses)


def fault_in_reach(fellows: Sequence[Fellow]) -> str:
    """A line that names one of several kshim that the clients of the others cannot reach; empty for none."""
    missed = [each for each in fellows if not each.is_reached] if len(fellows) > 1 else []
    if not missed:
        return ""
    address = next(each for each in missed[0].addresses.values() if each.is_nowhere)
    return (
        f"several kshim share the groups, and {address}, where one of them listens, is no address for the "
        "clients of the others: start it with --advertise HOST:PORT (advertised.listeners)"
    )


class Gone:
    """The kshim that have gone, for as long as clients may need them. Pure: times are arguments, in s."""

    def __init__(self) -> None:
        self._gone: dict[int, tuple[Fellow, float]] = {}
        """By node id: who has gone, and when."""

    def note(self, before: Iterable[Fellow], now: Iterable[Fellow], now_s: float) -> None:
        """Note who runs now, and who did before."""
        running = {each.node_id for each in now}
        self._gone |= {each.node_id: (each, now_s) for each in before}
        self._gone = {
            node_id: gone
            for node_id, gone in self._gone.items()
            if node_id not in running and now_s < gone[1] + REMEMBERED_S
        }

    def at(self, now_s: float) -> tuple[Fellow, ...]:
        """Those that are still to be told of."""
        return tuple(each for each, since_s in self._gone.values() if now_s < since_s + REMEMBERED_S)


def with_fellows(
    api_key: int, response: Any, fellows: Sequence[Fellow], gone: Sequence[Fellow], listener_name: str
) -> Any:
    """The answer to Metadata or DescribeCluster with all kshim among the brokers; any other as it is.

    fellows: those that run. gone: those that have run lately; for answers with topics only.
    """
    new = _BROKERS.get(api_key)
    if new is None:
        return response
    told = (*fellows, *gone) if api_key == ApiKey.METADATA and response.topics else fellows
    added = [
        new(fellow.node_id, address)
        for fellow in told
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
