"""All kshim processes in front of one upstream, as clients see them: brokers that coordinate groups and lead
nothing.

Some clients find a coordinator by its node id alone, among the brokers that Metadata lists. So each kshim
process derives a node id from its addresses, and all of them list it.

Each process has a port for each broker of the upstream, and tells the broker's own node id with its own
address. Of a leader, clients take the new address. Of a coordinator some do not: librdkafka ignores a
coordinator whose node id is the one that it knows. So a transaction's coordinator, which is a broker of the
upstream behind a port of one process, has a node id for each process, too: `port_id`.

Clients ask for the brokers again only after minutes. A client may ask while one process restarts, and then
lose the only other one that it knows. So Metadata also lists processes that stopped lately. Only answers with
topics do so: tools that ask for brokers alone connect to each, and would wait for one that has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from kshim.configs.endpoint import Endpoint
from kshim.configs.host_pattern import HostPattern
from kshim.upstream.rewriting import Place
from schemas.api_key import ApiKey
from schemas.messages.describe_cluster import DescribeClusterBroker
from schemas.messages.metadata import MetadataResponseBroker

FIRST_NODE_ID = 1 << 30
"""Above the upstream's node ids, which are small."""
REMEMBERED_S = 300.0
"""How long Metadata lists a process that has stopped: as long as clients keep metadata, by default."""


NO_PORTS: Mapping[int, int] = {}
NO_NAMES: Mapping[str, HostPattern] = {}


@dataclass(frozen=True, slots=True)
class Fellow:
    """One kshim process."""

    node_id: int
    addresses: Mapping[str, Endpoint]
    """The addresses for clients, by listener name."""
    ports: Mapping[int, int] = field(default_factory=dict, compare=False)
    """How far the port of each upstream broker is from these addresses, by the broker's node id; empty for a
    process of a build that does not say it.
    """
    names: Mapping[str, HostPattern] = field(default_factory=dict, compare=False)
    """The names of the upstream's brokers at listeners where they share a port, by listener name."""
    http: Endpoint | None = field(default=None, compare=False)
    """Where its HTTP interface is; None if it has none, or does not say it."""

    def at(self, listener_name: str, broker_id: int) -> Endpoint | None:
        """Return where clients reach an upstream broker at this process; None if that is not known."""
        address, port = self.addresses.get(listener_name), self.ports.get(broker_id)
        if address is None or port is None:
            return None
        names = self.names.get(listener_name)
        if names is not None:
            return Endpoint(names.host(broker_id), address.port)
        return Endpoint(address.host, address.port + port)

    @property
    def is_reached(self) -> bool:
        """True if clients of another kshim process can connect to this one."""
        return not any(address.is_nowhere for address in self.addresses.values())


def new_fellow(
    addresses: Mapping[str, Endpoint],
    ports: Mapping[int, int] = NO_PORTS,
    names: Mapping[str, HostPattern] = NO_NAMES,
    http: Endpoint | None = None,
) -> Fellow:
    """Return the kshim process with these addresses. All processes compute the same node id for it."""
    text = ",".join(f"{name}={address}" for name, address in sorted(addresses.items()))
    return Fellow(_node_id(text), addresses, ports, names, http)


def port_id(fellow: Fellow, broker_id: int) -> int:
    """Return the node id of a process's port for a broker of the upstream, as clients know it where the
    broker is a coordinator.
    """
    return _node_id(f"{fellow.node_id}/{broker_id}")


def _node_id(text: str) -> int:
    return FIRST_NODE_ID | crc32(text.encode()) & (FIRST_NODE_ID - 1)


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

    fellows: the processes that run, and in Metadata their ports. gone: those that stopped lately; only for
    answers with topics.
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
    if api_key == ApiKey.METADATA:
        added += _ports(response, fellows, listener_name)
    return replace(response, brokers=(*response.brokers, *added)) if added else response


def _ports(response: Any, fellows: Sequence[Fellow], listener_name: str) -> list[object]:
    """Return the ports of all processes for the brokers in a Metadata answer."""
    return [
        _in_metadata(port_id(fellow, broker.node_id), at)
        for fellow in fellows
        for broker in response.brokers
        if (at := fellow.at(listener_name, broker.node_id)) is not None
    ]


def place_at(fellow: Fellow, listener_name: str) -> Place:
    """Return a function that maps upstream brokers to the ports of another process."""

    def place(node_id: int, _: Endpoint) -> Endpoint | None:
        return fellow.at(listener_name, node_id)

    return place


def with_port_ids(response: Any, here: Fellow) -> object:
    """Give the coordinators in an answer to FindCoordinator, which are at the ports of the process `here`,
    the node ids of these ports.
    """
    if response.coordinators:
        return replace(response, coordinators=tuple(_at_port(each, here) for each in response.coordinators))
    return _at_port(response, here)


def _at_port(it: Any, here: Fellow) -> Any:
    return it if it.error_code or it.node_id < 0 else replace(it, node_id=port_id(here, it.node_id))


def _in_metadata(node_id: int, at: Endpoint) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node_id, host=at.host, port=at.port)


def _in_describe_cluster(node_id: int, at: Endpoint) -> DescribeClusterBroker:
    return DescribeClusterBroker(broker_id=node_id, host=at.host, port=at.port)


_BROKERS: Mapping[int, Callable[[int, Endpoint], object]] = {
    ApiKey.METADATA: _in_metadata,
    ApiKey.DESCRIBE_CLUSTER: _in_describe_cluster,
}
