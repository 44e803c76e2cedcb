"""The cluster's topics as groups see them, and a hash that changes when they do."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from schemas.internal_topics.group_metadata_log import TopicId


class Topic(NamedTuple):
    """One topic."""

    name: str
    topic_id: TopicId
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()
    """For each partition, the racks of its replicas, sorted; empty if no broker has a rack."""


class Topics(Protocol):
    """All topics. A name of no topic is no error: it counts as soon as there is such a topic."""

    def named(self, name: str) -> Topic | None:
        """The topic with that name."""

    def with_id(self, topic_id: TopicId) -> Topic | None:
        """The topic with that id."""

    def names(self) -> Collection[str]:
        """The names of all topics."""

    def version(self) -> int:
        """A number that grows when topics are created."""


class NoTopics:
    """Implements `Topics` without any topic."""

    def named(self, name: str) -> Topic | None:
        """See `Topics`."""
        return None

    def with_id(self, topic_id: TopicId) -> Topic | None:
        """See `Topics`."""
        return None

    def names(self) -> Collection[str]:
        """See `Topics`."""
        return ()

    def version(self) -> int:
        """See `Topics`."""
        return 0


def metadata_hash(topics: Collection[Topic]) -> int:
    """A hash of topics, sorted by name, as a signed 64-bit number; 0 if there are none.

    It is the BLAKE2b digest of what matters to groups: ids, names, numbers of partitions, racks. Kafka
    computes another hash (XXH3) of the same; a group loaded from Kafka's log therefore has one more epoch.
    """
    if not topics:
        return 0
    from hashlib import blake2b

    both = blake2b(b"".join(map(_facts, topics)), digest_size=8)
    return int.from_bytes(both.digest(), signed=True)


def _facts(topic: Topic) -> bytes:
    name, topic_id, partitions, racks = topic
    more = repr(racks) if racks else ""
    return b"%s%d %d %s%s" % (
        topic_id.bytes,
        len(name),
        partitions,
        name.encode(errors="surrogatepass"),
        more.encode(errors="surrogatepass"),
    )
