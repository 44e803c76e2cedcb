"""Makes the topics and partitions of a change, and writes them into it. Nothing is durable or shown yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from kshim.cluster.checks import DEFAULT, NewTopic, Nodes
from kshim.cluster.keys import NEXT_PARTITION_NO, TOPIC
from kshim.cluster.names import INTERNAL_TOPICS
from kshim.cluster.replicas import fitted, placed
from kshim.cluster.topics import Partition, Topic, encode_topic, new_partitions, new_topic_id
from kshim.cluster.writer import Changes

if TYPE_CHECKING:
    from kshim.configs.config import Config


class Making:
    """Gives out numbers and replicas to partitions, and ids to topics."""

    def __init__(self, config: Config, node_ids: Sequence[int], random_uuid: Callable[[], UUID]) -> None:
        self._config = config
        self._node_ids = node_ids
        self._random_uuid = random_uuid
        self.next_partition_no = 0
        """The next free number. If the write of a change fails, its numbers stay unused until a restart.
        That does no harm.
        """

    def with_defaults(self, new: NewTopic) -> NewTopic:
        """The topic with numbers of partitions and replicas, if its creator named none."""
        if new.assignments:
            return new
        count, factor = new.num_partitions, new.replication_factor
        return replace(
            new,
            num_partitions=self._config.num_partitions if count == DEFAULT else count,
            replication_factor=self._config.default_replication_factor if factor == DEFAULT else factor,
        )

    def topic(self, new: NewTopic, nodes: Nodes, changes: Changes) -> Topic:
        """Make a topic that passed its checks, and add it to `changes`."""
        given = [tuple(replicas) for _, replicas in sorted(new.assignments)]
        first = self.next_partition_no
        replicas = given or self._placed(first, new.num_partitions, new.replication_factor, nodes)
        topic = Topic(
            name=new.name,
            topic_id=new_topic_id(self._random_uuid),
            partitions=self._partitions(0, replicas, nodes, changes),
            configs={name: text for name, text in new.configs.items() if text is not None},
            is_internal=new.name in INTERNAL_TOPICS,
        )
        changes[topic_key(new.name)] = encode_topic(topic)
        return topic

    def grown(
        self,
        topic: Topic,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        nodes: Nodes,
        changes: Changes,
    ) -> Topic:
        """Grow a topic to `count` partitions, and add it to `changes`. assignments: the replicas of the new
        ones; None to place them.
        """
        last, have = topic.partitions[-1].replicas, len(topic.partitions)
        start, factor = self._node_ids.index(last[0]) + 1, len(topic.partitions[0].replicas)
        replicas = (
            self._placed(start, count - have, factor, nodes)
            if assignments is None
            else [tuple(each) for each in assignments]
        )
        added = self._partitions(have, replicas, nodes, changes)
        grown = replace(topic, partitions=topic.partitions + added)
        changes[topic_key(topic.name)] = encode_topic(grown)
        return grown

    def fitted(self, topic: Topic, changes: Changes) -> Topic:
        """Fit the replicas of a stored topic to the brokers of this start. An altered topic is added to
        `changes`.
        """
        partitions = tuple(fitted(partition, self._node_ids) for partition in topic.partitions)
        if partitions == topic.partitions:
            return topic
        topic = replace(topic, partitions=partitions)
        changes[topic_key(topic.name)] = encode_topic(topic)
        return topic

    def _placed(self, start: int, count: int, replication_factor: int, nodes: Nodes) -> list[tuple[int, ...]]:
        """Place replicas round robin over the running brokers, or over all brokers if too few run.

        Brokers with cordoned directories are left out, unless internal topics need them at a first start.
        """
        choices = (
            [node for node in nodes.running if node not in nodes.cordoned],
            [node for node in self._node_ids if node not in nodes.cordoned],
            self._node_ids,
        )
        chosen = next(each for each in choices if len(each) >= replication_factor)
        return placed(start, count, replication_factor, chosen)

    def _partitions(
        self, start: int, replicas: Sequence[tuple[int, ...]], nodes: Nodes, changes: Changes
    ) -> tuple[Partition, ...]:
        """Make partitions from index `start` on, and add the next free number to `changes`."""
        first = self.next_partition_no
        self.next_partition_no += len(replicas)
        changes[NEXT_PARTITION_NO] = b"%d" % self.next_partition_no
        return new_partitions(start, first, replicas, nodes.running)


def topic_key(name: str) -> bytes:
    """The key of a topic in the metadata."""
    return TOPIC + name.encode()
