"""Several Apache Kafka nodes that are one cluster; each may be killed, and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration.apache_kafka import COMMAND
from integration.apache_kafka.__main__ import new_cluster_id
from integration.support.ports import Slot
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.messages.metadata import MetadataRequest

METADATA = 12


class Nodes:
    """Nodes that are brokers and controllers, with node ids from 1 on; not started yet."""

    def __init__(self, directory: Path, count: int = 3, *options: str) -> None:
        """options: as of `Server`, for each."""
        self._held = Slot()
        ports = ",".join(str(self._held.port + number) for number in range(count))
        several = ["--cluster-id", new_cluster_id(), "--controllers", ports]
        self.servers = {
            node_id: Server(
                directory / f"node{node_id}", [*several, "--node-id", str(node_id), *options], command=COMMAND
            )
            for node_id in range(1, count + 1)
        }
        """By node id."""

    def start(self) -> Nodes:
        """Start all at once: the first ones are ready only when most of them run."""
        _all(Server.start, self.servers.values())
        return self

    def running(self) -> list[Server]:
        return [server for server in self.servers.values() if server.running]

    @property
    def bootstrap(self) -> str:
        return ",".join(server.bootstrap for server in self.servers.values())

    def kill(self) -> None:
        """Kill those that run."""
        _all(Server.kill, self.running())


def are_in_sync(node: Server, count: int) -> bool:
    """True if this node of `count` knows all replicas of all topics to be in sync. The next restart waits for
    that.
    """
    try:
        with Wire(node.host, node.port) as wire:
            told = wire.ask(METADATA, MetadataRequest(topics=None))
    except OSError:
        return False
    return len(told.brokers) == count and all(
        len(partition.isr_nodes) == len(partition.replica_nodes)
        for topic in told.topics
        for partition in topic.partitions
    )


def _all(do: Callable[[Server], object], servers: Iterable[Server]) -> None:
    with ThreadPoolExecutor() as threads:
        list(threads.map(do, servers))
