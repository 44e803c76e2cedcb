"""The part of a cluster that a server knows even if it does not keep the cluster itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from kshim.cluster.topics import Topic


class KnownCluster(Protocol):
    """A cluster to read from: one of kshim's own, or an upstream as it was last seen."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The known topics, by name."""

    @property
    def running(self) -> tuple[int, ...]:
        """The node ids of the running brokers."""

    @property
    def group_version(self) -> int:
        """The level of the feature group.version: 0 switches groups of the consumer protocol off."""

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        """Return the topic with that id; None if it is not known."""
