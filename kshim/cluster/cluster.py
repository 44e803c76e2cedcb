"""The cluster: one writer of brokers, topics, partitions and producer ids.

Every change runs under one lock: it looks at what is there, decides, makes the decision durable, and only
then changes what clients see. So two creations of one name cannot both succeed, a deletion cannot be undone
by a change that was on its way, and nobody is told of a topic that a crash could take back.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from twisted.internet.defer import Deferred, DeferredLock, inlineCallbacks, succeed

from kshim.cluster.checks import (
    NewTopic,
    Refusal,
    refuse_deletion,
    refuse_new_partitions,
    refuse_new_topic,
)
from kshim.cluster.names import GROUP_METADATA_TOPIC, INTERNAL_TOPICS
from kshim.cluster.topic_configs import LogConfig, log_config
from kshim.cluster.topics import Partition, Topic, decode_topic, encode_topic, new_topic_id, uuid_text

if TYPE_CHECKING:
    from kshim.config import Config
    from kshim.storage.interfaces import Log, Metadata

_PRODUCER_ID_BLOCK = 1000  # ids taken by one durable write, as in Kafka

_CLUSTER_ID = b"cluster/id"
_NEXT_PARTITION_NO = b"cluster/next_partition_no"
_NEXT_PRODUCER_ID = b"cluster/next_producer_id"
_TOPIC = b"topic/"
_DELETED = b"deleted_partition/"

_GROUP_METADATA_CONFIGS = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}

Changes = dict[bytes, bytes | None]


class Cluster:
    """What Metadata answers from. To be used after `start()` has fired.

    topics: by name; all that is durable, nothing else. node_ids: the brokers. cluster_id: Kafka's text form
    of a uuid.
    """

    def __init__(
        self,
        metadata: Metadata,
        log: Log,
        config: Config,
        *,
        random_uuid: Callable[[], UUID] = uuid.uuid4,
    ) -> None:
        self._metadata = metadata
        self._log = log
        self._config = config
        self._random_uuid = random_uuid
        self._changing = DeferredLock()
        self.node_ids: tuple[int, ...] = (config.node_id,)
        self.cluster_id = ""
        self.topics: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._log_configs: dict[UUID, LogConfig] = {}
        self._next_partition_no = self._next_producer_id = self._producer_ids_end = 0

    # -- reading

    @property
    def controller_id(self) -> int:
        return self.node_ids[0]

    @property
    def group_metadata_topic(self) -> Topic:
        """__consumer_offsets. Its number of partitions never changes."""
        return self.topics[GROUP_METADATA_TOPIC]

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        """The topic of that id; an id is never given to a second topic, not even to one of the same name."""
        return self._by_id.get(topic_id)

    def log_config(self, topic: Topic) -> LogConfig:
        """What of the configs of `topic`, and of the broker's, matters to its log."""
        known = self._log_configs.get(topic.topic_id)
        if known is None:
            known = self._log_configs[topic.topic_id] = log_config(topic.configs, self._config)
        return known

    # -- starting

    @inlineCallbacks
    def start(self) -> Generator[Deferred[Any], Any, None]:
        """Read what is stored; on first use, make the cluster id and __consumer_offsets. Errbacks
        StorageError.
        """
        for key, value in self._metadata.items(_TOPIC):
            name = key.removeprefix(_TOPIC).decode()
            self._show(decode_topic(name, value))
        self._next_partition_no = int(self._metadata.get(_NEXT_PARTITION_NO) or 0)
        self._next_producer_id = self._producer_ids_end = int(self._metadata.get(_NEXT_PRODUCER_ID) or 0)
        changes: Changes = {}
        for key, _ in self._metadata.items(_DELETED):  # a crash came between the deletion and its end
            self._log.delete(int(key.removeprefix(_DELETED)))
            changes[key] = None
        cluster_id = (self._metadata.get(_CLUSTER_ID) or b"").decode()
        if not cluster_id:
            cluster_id = uuid_text(new_topic_id(self._random_uuid))
            changes[_CLUSTER_ID] = cluster_id.encode()
        made: list[Topic] = []
        if GROUP_METADATA_TOPIC not in self.topics:
            count = self._config.offsets_topic_num_partitions
            made.append(self._new_topic(GROUP_METADATA_TOPIC, count, _GROUP_METADATA_CONFIGS, changes))
        if changes:
            yield self._metadata.put(changes)
        self.cluster_id = cluster_id
        for topic in made:
            self._show(topic)

    # -- changing

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Deferred[dict[str, Topic | Refusal]]:
        """Make the topics that can be made, in one durable write; the others are refused one by one.

        Fires with what became of each name. With `validate_only` the topics are as they would be, and nothing
        is kept. Errbacks StorageError; then none of them was made.
        """
        return cast(
            "Deferred[dict[str, Topic | Refusal]]",
            self._changing.run(self._create_topics, wanted, validate_only),
        )

    @inlineCallbacks
    def _create_topics(
        self, wanted: Sequence[NewTopic], validate_only: bool
    ) -> Generator[Deferred[Any], Any, dict[str, Topic | Refusal]]:
        outcome: dict[str, Topic | Refusal] = {}
        changes: Changes = {}
        next_partition_no = self._next_partition_no
        for new in wanted:
            refusal = refuse_new_topic(new, self.topics, self.node_ids)
            if refusal is None:
                count = len(new.assignments) or self._count_or_default(new.num_partitions)
                configs = {name: text for name, text in new.configs.items() if text is not None}
                outcome[new.name] = self._new_topic(new.name, count, configs, changes)
            else:
                outcome[new.name] = refusal
        if validate_only:
            self._next_partition_no = next_partition_no
        elif changes:
            yield self._metadata.put(changes)
            for made in outcome.values():
                if isinstance(made, Topic):
                    self._show(made)
        return outcome

    def auto_create_topics(self, names: Sequence[str]) -> Deferred[dict[str, Topic | Refusal]]:
        """The topics of these names, made with the defaults where there are none yet."""

        def with_existing(outcome: dict[str, Topic | Refusal]) -> dict[str, Topic | Refusal]:
            return {name: self.topics.get(name, made) for name, made in outcome.items()}

        return self.create_topics([NewTopic(name) for name in names]).addCallback(with_existing)

    def delete_topics(self, topics: Sequence[Topic]) -> Deferred[dict[UUID, Refusal | None]]:
        """Delete topics and their records, in one durable write. Fires with a refusal, or None for success,
        by topic id.

        Errbacks StorageError; then none of them was deleted.
        """
        return cast("Deferred[dict[UUID, Refusal | None]]", self._changing.run(self._delete_topics, topics))

    @inlineCallbacks
    def _delete_topics(
        self, topics: Sequence[Topic]
    ) -> Generator[Deferred[Any], Any, dict[UUID, Refusal | None]]:
        outcome = {topic.topic_id: refuse_deletion(topic, self._by_id) for topic in topics}
        deleted = [self._by_id[topic_id] for topic_id, refusal in outcome.items() if refusal is None]
        gone = {
            b"%s%d" % (_DELETED, p.partition_no): p.partition_no
            for topic in deleted
            for p in topic.partitions
        }
        if deleted:
            yield self._metadata.put(
                {_topic_key(topic.name): None for topic in deleted} | dict.fromkeys(gone, b"")
            )
        for topic in deleted:
            del self.topics[topic.name], self._by_id[topic.topic_id]
            self._log_configs.pop(topic.topic_id, None)
        for partition_no in gone.values():
            self._log.delete(partition_no)
        if gone:
            # The answer need not wait for this; should it fail, start() deletes them once more.
            self._metadata.put(dict.fromkeys(gone)).addErrback(lambda _: None)
        return outcome

    def add_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> Deferred[Refusal | None]:
        """Let topic `name` have `count` partitions. Fires with a refusal, or None for success. Errbacks
        StorageError.
        """
        return cast(
            "Deferred[Refusal | None]",
            self._changing.run(self._add_partitions, name, count, assignments, validate_only),
        )

    @inlineCallbacks
    def _add_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None, validate_only: bool
    ) -> Generator[Deferred[Any], Any, Refusal | None]:
        topic = self.topics.get(name)
        refusal = refuse_new_partitions(topic, count, assignments, self.node_ids)
        if refusal is not None or validate_only:
            return refusal
        assert topic is not None
        changes: Changes = {}
        added = self._new_partitions(len(topic.partitions), count, changes)
        grown = Topic(
            name,
            topic.topic_id,
            topic.partitions + added,
            configs=topic.configs,
            is_internal=topic.is_internal,
        )
        changes[_topic_key(name)] = encode_topic(grown)
        yield self._metadata.put(changes)
        self._show(grown)
        return None

    def new_producer_id(self) -> Deferred[int]:
        """A producer id that was never given out before, not even before a crash. Errbacks StorageError."""
        if self._next_producer_id < self._producer_ids_end:
            return succeed(self._take_producer_id())
        return cast("Deferred[int]", self._changing.run(self._producer_id_of_new_block))

    @inlineCallbacks
    def _producer_id_of_new_block(self) -> Generator[Deferred[Any], Any, int]:
        if self._next_producer_id == self._producer_ids_end:
            end = self._producer_ids_end + _PRODUCER_ID_BLOCK
            yield self._metadata.put({_NEXT_PRODUCER_ID: b"%d" % end})
            self._producer_ids_end = end
        return self._take_producer_id()

    def _take_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id - 1

    # -- the parts of a change

    def _count_or_default(self, num_partitions: int) -> int:
        return self._config.num_partitions if num_partitions == -1 else num_partitions

    def _new_topic(self, name: str, count: int, configs: Mapping[str, str], changes: Changes) -> Topic:
        topic = Topic(
            name=name,
            topic_id=new_topic_id(self._random_uuid),
            partitions=self._new_partitions(0, count, changes),
            configs=dict(configs),
            is_internal=name in INTERNAL_TOPICS,
        )
        changes[_topic_key(name)] = encode_topic(topic)
        return topic

    def _new_partitions(self, start: int, end: int, changes: Changes) -> tuple[Partition, ...]:
        """Partitions with the indexes from `start` up to `end`; their numbers count as used once `changes` is
        durable.

        A number that a failed write took is not given out again before a restart; nobody can tell.
        """
        first = self._next_partition_no
        self._next_partition_no += end - start
        changes[_NEXT_PARTITION_NO] = b"%d" % self._next_partition_no
        return tuple(Partition(index, first + index - start, self.node_ids[0]) for index in range(start, end))

    def _show(self, topic: Topic) -> None:
        self.topics[topic.name] = self._by_id[topic.topic_id] = topic
        compaction = self.log_config(topic).compaction
        if compaction is not None:
            for partition in topic.partitions:
                self._log.compact(partition.partition_no, compaction)


def _topic_key(name: str) -> bytes:
    return _TOPIC + name.encode()
