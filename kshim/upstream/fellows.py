"""All kshim processes in front of one upstream, as clients see them: brokers that coordinate groups and lead
nothing.

Some clients find a coordinator by its node id alone, among the brokers that Metadata lists. So each kshim
process derives a node id from its addresses, and all of them list it.

Clients ask for the brokers again only after minutes. A client may ask while one process restarts, and then
lose the only other one that it knows. So Metadata also lists processes that stopped lately. Only answers with
topics do so: tools that ask for brokers alone connect to each, and would wait for one that has stopped.
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
"""Above the upstream's node ids, which are small."""
REMEMBERED_S = 300.0
"""How long Metadata lists a process that has stopped: as long as clients keep metadata, by default."""


@dataclass(frozen=True, slots=True)
class Fellow:
    """One kshim process."""

    node_id: int
    addresses: Mapping[str, Endpoint]
    """The addresses for clients, by listener name."""

    @property
    def is_reached(self) -> bool:
        """True if clients of another kshim process can connect to this one."""
        return not any(address.is_nowhere for address in self.addresses.values())


def new_fellow(addresses: Mapping[str, Endpoint]) -> Fellow:
    """Return the kshim process with these addresses. All processes compute the same node id for it."""
    text = ",".join(f"{name}={address}" for name, address in sorted(addresses.items()))
    return Fellow(FIRST_NODE_ID | crc32(text.encode()) & (FIRST_NODE_ID - 1), addresses)


def fault_in_reach(fellows: Sequence[Fellow]) -> str:
    """Return a warning that names one process which clients of the others cannot reach; empty for none."""
    missed = [each for each in fellows if not each.is_reached] if len(fellows) > 1 else []
    if not missed:
        return ""
    address = next(each for each in missed[0].addresses.values() if each.is_nowhere)
    return (
        f"several kshim share the groups, and {address}, where one of them listens, is no address for the "
        "clients of the others: start it with --advertise HOST:PORT (advertised.listeners)"
    )


class Gone:
    """The kshim processes that stopped lately. Pure: times are arguments, in seconds."""

    def __init__(self) -> None:
        self._gone: dict[int, tuple[Fellow, float]] = {}
        """Each stopped process, and the time at which it was last seen; by node id."""

    def note(self, before: Iterable[Fellow], now: Iterable[Fellow], now_s: float) -> None:
        """Compare the processes that run now with those that ran before, and remember those that stopped."""
        running = {each.node_id for each in now}
        self._gone |= {each.node_id: (each, now_s) for each in before}
        self._gone = {
            node_id: gone
            for node_id, gone in self._gone.items()
            if node_id not in running and now_s < gone[1] + REMEMBERED_S
        }

    def at(self, now_s: float) -> tuple[Fellow, ...]:
        """The stopped processes that Metadata still has to list."""
        return tuple(each for each, since_s in self._gone.values() if now_s < since_s + REMEMBERED_S)


def with_fellows(
    api_key: int, response: Any, fellows: Sequence[Fellow], gone: Sequence[Fellow], listener_name: str
) -> object:
    """Add all kshim processes to the brokers of a Metadata or DescribeCluster answer. Others stay as they
    are.

    fellows: the processes that run. gone: those that stopped lately; only for answers with topics.
    """
    new = _BROKERS.get(api_key)
    if new is None:
        return response
    shown = (*fellows, *gone) if api_key == ApiKey.METADATA and response.topics else fellows
    added = [
        new(fellow.node_id, address)
        for fellow in shown
        if (address := fellow.addresses.get(listener_name)) is not None
    ]
    return replace(response, brokers=(*response.brokers, *added)) if added else response


def _in_metadata(node_id: int, at: Endpoint) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node_id, host=at.host, port=at.port)


def _in_describe_cluster(node_id: int, at: Endpoint) -> DescribeClusterBroker:
    return DescribeClusterBroker(broker_id=node_id, host=at.host, port=at.port)


_BROKERS: Mapping[int, Callable[[int, Endpoint], object]] = {
    ApiKey.METADATA: _in_metadata,
    ApiKey.DESCRIBE_CLUSTER: _in_describe_cluster,
}
