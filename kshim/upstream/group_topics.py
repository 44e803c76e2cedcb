"""The upstream's topics as consumer groups see them.

Regular expressions do not match kshim's own topic: each commit of its offsets would be a new record there.
Replicas have no racks here: groups do not rebalance when replicas move.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from kshim.cluster.topics import Topic as KnownTopic
from kshim.coordination.groups.consumer.topics import Topic
from kshim.upstream.every_topic import EveryTopic
from kshim.upstream.topics import Topics


class GroupTopics:
    """Implements `kshim.coordination.groups.consumer.topics.Topics`."""

    def __init__(self, known: Topics, every: EveryTopic, own: str) -> None:
        """known: the topics that groups have named. own: the name of kshim's topic."""
        self._known = known
        self._every = every
        self._own = own

    def named(self, name: str) -> Topic | None:
        """See `Topics`."""
        known = self._known.by_name.get(name)
        return self._brief(name) if known is None else _topic(known)

    def with_id(self, topic_id: UUID) -> Topic | None:
        """See `Topics`."""
        known = self._known.by_id.get(topic_id)
        if known is not None:
            return _topic(known)
        name = self._every.names_by_id.get(topic_id)
        return None if name is None else self._brief(name)

    def names(self) -> Collection[str]:
        """See `Topics`."""
        return {*self._every.by_name, *self._known.by_name} - {self._own}

    def version(self) -> int:
        """See `Topics`."""
        return self._every.version

    def _brief(self, name: str) -> Topic | None:
        brief = self._every.by_name.get(name)
        return None if brief is None else Topic(name, brief.topic_id, brief.partitions)


def _topic(known: KnownTopic) -> Topic:
    return Topic(known.name, known.topic_id, len(known.partitions))
