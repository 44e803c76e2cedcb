"""The cluster's topics as groups see them."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from kshim.cluster import Cluster
from kshim.cluster.topics import Topic as ClusterTopic
from kshim.coordination.groups.consumer.topics import Topic

CREATED = "was created"


class ClusterTopics:
    """Implements `Topics` over the local cluster. Its brokers have no racks."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._version = cluster.writer.offset
        cluster.watch_topics(self._note)

    def named(self, name: str) -> Topic | None:
        """See `Topics`."""
        return _topic(self._cluster.topics.get(name))

    def with_id(self, topic_id: UUID) -> Topic | None:
        """See `Topics`."""
        return _topic(self._cluster.topic_by_id(topic_id))

    def names(self) -> Collection[str]:
        """See `Topics`."""
        return self._cluster.topics.keys()

    def version(self) -> int:
        """The number of changes of the cluster when a topic was created last; at first, when this process
        started.
        """
        return self._version

    def _note(self, name: str, change: str) -> None:
        if change.startswith(CREATED):
            self._version = self._cluster.writer.offset


def _topic(topic: ClusterTopic | None) -> Topic | None:
    return None if topic is None else Topic(topic.name, topic.topic_id, len(topic.partitions))
