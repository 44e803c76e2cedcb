"""The upstream's last known state, to read from."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from kshim.cluster import Topic
from kshim.cluster.features import GROUP_VERSION, LATEST
from kshim.upstream.topics import Topics


class Mirror:
    """The upstream's id, its running brokers, and the topics that groups use. Implements `KnownCluster`."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.topics = topics.by_name
        self.cluster_id = ""
        self.running: tuple[int, ...] = ()
        self.group_version = LATEST[GROUP_VERSION]
        """See `KnownCluster`. The upstream's own level does not matter, as kshim serves the groups; 0 if the
        upstream lacks what their members need.
        """
        self.version = 0
        """Grows with each answer of the upstream; see `Replies`."""

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        """Return the topic with that id; None if it is not known."""
        return self._topics.by_id.get(topic_id)

    def update(self, cluster_id: str, running: Iterable[int]) -> None:
        """Take the cluster id and the running brokers from an answer of the upstream."""
        self.cluster_id = cluster_id
        self.running = tuple(sorted(running))
        self.version += 1
