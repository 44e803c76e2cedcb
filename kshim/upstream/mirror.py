"""The upstream's last known state as a read-only `Cluster`, for the parts of kshim that ask one."""

from __future__ import annotations

from collections.abc import Iterable

from kshim.cluster import Cluster
from kshim.configs.config import Config
from kshim.storage.memory import MemoryLog, MemoryMetadata
from kshim.upstream.topics import Topics


class Mirror(Cluster):
    """The upstream's id, its running brokers, and the topics that groups use."""

    def __init__(self, config: Config, topics: Topics) -> None:
        self.first_node_id = config.node_id
        super().__init__(MemoryMetadata(), MemoryLog(), config)
        self.topics, self._by_id = topics.by_name, topics.by_id
        topics.on_change(lambda name, change: self._tell(name, change))

    def told(self, cluster_id: str, running: Iterable[int]) -> None:
        """Take the cluster id and the running brokers from an answer of the upstream."""
        self.cluster_id = cluster_id
        self.running = self.node_ids = self.registered = tuple(sorted(running))
        self.writer.version += 1
