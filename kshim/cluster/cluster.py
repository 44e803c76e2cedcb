"""The cluster: its brokers, topics and partitions, their configs, and the changes of all these.

A change is durable before clients see it, and changes are made one at a time: see `writer`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from twisted.internet.defer import Deferred

from kshim.cluster.changes import Change, Move, Outcome, moves
from kshim.cluster.checks import (
    NewTopic,
    Nodes,
    Refusal,
    refuse_deletion,
    refuse_made_topics,
    refuse_new_partitions,
    refuse_new_topic,
    refuse_new_topics,
    refuse_to_unregister,
)
from kshim.cluster.config_changes import ConfigChange, altered
from kshim.cluster.cordoned import is_cordoned
from kshim.cluster.current_configs import CurrentConfigs
from kshim.cluster.features import GROUP_VERSION
from kshim.cluster.group_configs import decode_group, encode_group, stored_key
from kshim.cluster.internal_topics import auto_created
from kshim.cluster.keys import (
    BROKER_CONFIGS,
    CLUSTER_ID,
    DELETED,
    GROUP_CONFIGS,
    NEXT_PARTITION_NO,
    TOPIC,
)
from kshim.cluster.making import Making, topic_key
from kshim.cluster.names import GROUP_METADATA_TOPIC, MetricNames
from kshim.cluster.pause import Pause, no_pause
from kshim.cluster.scram import ScramUsers
from kshim.cluster.settings import ClientQuotas, Features, ProducerIds
from kshim.cluster.topics import (
    NO_LEADER,
    Topic,
    decode_topic,
    encode_topic,
    new_topic_id,
    uuid_text,
)
from kshim.cluster.writer import Changes, Writer

if TYPE_CHECKING:
    from kshim.cluster.acls import Acls
    from kshim.configs.config import Config
    from kshim.storage.interfaces import Log, Metadata

_GROUP_METADATA_CONFIGS = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}

_NEW_TOPIC_US = 100
_DELETED_PARTITION_US, _DELETED_AT_ONCE = 5, 500

Admit = Callable[[int], Refusal | None]
"""Called with a number of partitions before they are made or deleted. It may return a refusal."""


def admit_all(partitions: int) -> None:
    """Admit any number of partitions; no quota limits them."""


Forget = Callable[[Sequence[str]], Awaitable[None]]
"""Called with the names of deleted topics. It removes state about them that other modules keep."""


async def forget_nothing(names: Sequence[str]) -> None:
    """Do nothing: no other module keeps state about topics."""


class Cluster:
    """The state from which Metadata is answered. Use it only after `start()` has fired."""

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
        self.writer = Writer(metadata)
        self.features = Features(self.writer)
        self.client_quotas = ClientQuotas(self.writer)
        self.scram_users = ScramUsers(self.writer)
        self.producer_ids = ProducerIds(self.writer)
        self.acls = _new_acls(config, self.writer)
        """None if no authorizer is configured; then everybody may do everything."""
        self.node_ids = tuple(range(config.node_id, config.node_id + config.brokers))
        self.running = self.node_ids  # the brokers that clients may connect to
        self.registered = self.node_ids  # running brokers, and stopped ones that nobody has unregistered
        self.cluster_id = ""  # Kafka's text form of a uuid
        self.topics: dict[str, Topic] = {}  # by name; exactly the durable ones
        self._by_id: dict[UUID, Topic] = {}
        self._metric_names = MetricNames()
        self._configs = CurrentConfigs(config, self.node_ids)
        self.broker_configs, self.log_config = self._configs.of_broker, self._configs.of_log
        self.group_values = self._configs.of_group
        self._watchers: dict[object, Callable[[Sequence[Move]], None]] = {}
        self._topic_watchers: list[Callable[[str, str], None]] = []
        self._group_watchers: list[Callable[[Collection[str]], None]] = []
        self._making = Making(config, self.node_ids, random_uuid)

    # ---- reading

    @property
    def controller_id(self) -> int:
        """The first broker that runs; -1 while none does."""
        return next(iter(self.running), NO_LEADER)

    @property
    def group_version(self) -> int:
        """See `KnownCluster`."""
        return self.features.levels.get(GROUP_VERSION, 0)

    @property
    def cordoned(self) -> frozenset[int]:
        """The brokers that take no new replicas, because their log directories are cordoned."""
        return frozenset(node for node in self.node_ids if is_cordoned(self.broker_configs(node)))

    def nodes(self) -> Nodes:
        """The brokers, as checks of new replicas need them."""
        return Nodes(self.registered, self.running, self.cordoned)

    @property
    def group_metadata_topic(self) -> Topic:
        """__consumer_offsets. Its number of partitions never changes."""
        return self.topics[GROUP_METADATA_TOPIC]

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        """The topic with that id. Ids are never reused: a topic that is made again gets another id."""
        return self._by_id.get(topic_id)

    def watch_leaders(self, watcher: Callable[[Sequence[Move]], None]) -> Callable[[], None]:
        """Call `watcher(moves)` each time the leader or leader epoch of partitions has changed.

        The returned function removes the watcher.
        """
        key = object()
        self._watchers[key] = watcher

        def unwatch() -> None:
            self._watchers.pop(key, None)

        return unwatch

    def watch_topics(self, watcher: Callable[[str, str], None]) -> None:
        """Call `watcher(name, change)` each time a topic was created, extended or deleted.

        change: a predicate for the topic's name, such as "was created".
        """
        self._topic_watchers.append(watcher)

    def _notify(self, name: str, change: str) -> None:
        for watcher in self._topic_watchers:
            watcher(name, change)

    @property
    def group_configs(self) -> Mapping[str, Mapping[str, str]]:
        """The configs that were set for groups, by group id."""
        return self._configs.groups

    def watch_group_configs(self, watcher: Callable[[Collection[str]], None]) -> None:
        """Call `watcher(group_ids)` each time configs of groups were changed."""
        self._group_watchers.append(watcher)

    # ---- starting

    def start(self) -> Deferred[None]:
        """Read the stored state; on first use, create the cluster id and __consumer_offsets. Errbacks
        StorageError.
        """
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        changes: Changes = {}
        self.writer.start()
        kept_here = (self.features, self.client_quotas, self.scram_users, self.producer_ids, self.acls)
        for kept in kept_here:
            if kept is not None:
                kept.read(self._metadata)
        for key, value in self._metadata.items(BROKER_CONFIGS):
            self._configs.dynamic[key.removeprefix(BROKER_CONFIGS).decode()] = json.loads(value)
        self._configs.alter_groups(
            dict(decode_group(value) for _, value in self._metadata.items(GROUP_CONFIGS))
        )
        for key, value in self._metadata.items(TOPIC):
            stored = decode_topic(key.removeprefix(TOPIC).decode(), value)
            self._show(self._making.fitted(stored, changes))
        self._making.next_partition_no = int(self._metadata.get(NEXT_PARTITION_NO) or 0)
        for key, _ in self._metadata.items(DELETED):  # a crash came between the deletion and its end
            self._log.delete(int(key.removeprefix(DELETED)))
            changes[key] = None
        cluster_id = (self._metadata.get(CLUSTER_ID) or b"").decode()
        if not cluster_id:
            cluster_id = uuid_text(new_topic_id(self._random_uuid))
            changes[CLUSTER_ID] = cluster_id.encode()
        self.scram_users.prepare(changes)
        made: list[Topic] = []
        if GROUP_METADATA_TOPIC not in self.topics:
            count = self._config.offsets_topic_num_partitions
            factor = min(self._config.offsets_topic_replication_factor, len(self.node_ids))
            new = NewTopic(GROUP_METADATA_TOPIC, count, factor, configs=_GROUP_METADATA_CONFIGS)
            made.append(self._making.topic(new, self.nodes(), changes))
        if changes:
            await self.writer.put(changes)
        self.cluster_id = cluster_id
        for topic in made:
            self._show(topic)

    # ---- changing

    def create_topics(
        self,
        wanted: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        pause: Pause = no_pause,
        admit: Admit = admit_all,
    ) -> Deferred[dict[str, Topic | Refusal]]:
        """Create the topics that can be created, in one durable write; refuse the others one by one.

        Fires with the topic or the refusal of each name. With `validate_only` it makes the same topics, but
        neither stores nor shows them. Errbacks StorageError; then no topic was created.
        """
        return self.writer.run(self._create_topics, wanted, validate_only, pause, admit)

    async def _create_topics(
        self, wanted: Sequence[NewTopic], validate_only: bool, pause: Pause, admit: Admit
    ) -> dict[str, Topic | Refusal]:
        wanted = [self._making.with_defaults(new) for new in wanted]
        if (refusal := refuse_new_topics(wanted)) is not None:
            return {new.name: refusal for new in wanted}
        outcome: dict[str, Topic | Refusal] = {}
        changes: Changes = {}
        next_partition_no = self._making.next_partition_no
        configs, nodes = self.broker_configs(self.node_ids[0]), self.nodes()
        for new in wanted:
            refusal = refuse_new_topic(new, self.topics, self._metric_names, nodes, configs) or admit(
                len(new.assignments) or new.num_partitions
            )
            outcome[new.name] = self._making.topic(new, nodes, changes) if refusal is None else refusal
            await pause(_NEW_TOPIC_US)
        made = [topic for topic in outcome.values() if isinstance(topic, Topic)]
        refusal = refuse_made_topics(made)
        if validate_only or refusal is not None:
            self._making.next_partition_no = next_partition_no
        elif changes:
            await self.writer.put(changes)
            for topic in made:
                self._show(topic)
                self._notify(topic.name, "was created")
                await pause(_NEW_TOPIC_US)
        return outcome if refusal is None else dict.fromkeys(outcome, refusal)

    def auto_create_topics(
        self, names: Sequence[str], admit: Admit = admit_all
    ) -> Deferred[dict[str, Topic | Refusal]]:
        """Create the missing ones of these topics with the defaults. Fires with the topic or the refusal of
        each name.
        """

        def with_existing(outcome: dict[str, Topic | Refusal]) -> dict[str, Topic | Refusal]:
            return {name: self.topics.get(name, made) for name, made in outcome.items()}

        wanted = [auto_created(name, self._config, len(self.node_ids)) for name in names]
        return self.create_topics(wanted, admit=admit).addCallback(with_existing)

    def delete_topics(
        self,
        topics: Sequence[Topic],
        admit: Admit = admit_all,
        *,
        pause: Pause = no_pause,
        forget: Forget = forget_nothing,
    ) -> Deferred[dict[UUID, Refusal | None]]:
        """Delete topics and their records, in one durable write. Fires with a refusal, or None for success,
        by topic id.

        forget: called with the names of the deleted topics, before topics with the same names can be made.
        Errbacks StorageError; then no topic was deleted.
        """
        return self.writer.run(self._delete_topics, topics, admit, pause, forget)

    async def _delete_topics(
        self, topics: Sequence[Topic], admit: Admit, pause: Pause, forget: Forget
    ) -> dict[UUID, Refusal | None]:
        outcome = {
            topic.topic_id: refuse_deletion(topic, self._by_id) or admit(len(topic.partitions))
            for topic in topics
        }
        deleted = [self._by_id[topic_id] for topic_id, refusal in outcome.items() if refusal is None]
        gone = {
            b"%s%d" % (DELETED, p.partition_no): p.partition_no for topic in deleted for p in topic.partitions
        }
        if deleted:
            await self.writer.put(
                {topic_key(topic.name): None for topic in deleted} | dict.fromkeys(gone, b"")
            )
        for topic in deleted:
            self.writer.version += 1  # replies may have been kept since the change was made durable
            del self.topics[topic.name], self._by_id[topic.topic_id]
            self._metric_names.discard(topic.name)
            self._configs.forget_logs_of(topic)
            self._notify(topic.name, "was deleted")
            await pause(_DELETED_PARTITION_US * len(topic.partitions))
        for number, partition_no in enumerate(gone.values()):
            if number % _DELETED_AT_ONCE == 0:
                await pause(_DELETED_PARTITION_US * _DELETED_AT_ONCE)
            self._log.delete(partition_no)
        if deleted:
            await forget([topic.name for topic in deleted])
        if gone:
            # The answer need not wait for this write. If it fails, start() deletes the partitions once more.
            self._metadata.put(dict.fromkeys(gone)).addErrback(lambda _: None)
        return outcome

    def add_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        admit: Admit = admit_all,
    ) -> Deferred[Refusal | None]:
        """Grow topic `name` to `count` partitions. Fires with a refusal, or None for success. Errbacks
        StorageError.
        """
        return self.writer.run(self._add_partitions, name, count, assignments, validate_only, admit)

    async def _add_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        validate_only: bool,
        admit: Admit,
    ) -> Refusal | None:
        topic = self.topics.get(name)
        refusal = refuse_new_partitions(topic, count, assignments, self.nodes(), admit)
        if refusal is not None or validate_only:
            return refusal
        assert topic is not None
        changes: Changes = {}
        have = len(topic.partitions)
        grown = self._making.grown(topic, count, assignments, self.nodes(), changes)
        await self.writer.put(changes)
        self._show(grown)
        self._notify(name, f"has {count} partitions, and had {have}")
        return None

    def change_topics(self, decide: Callable[[], Change]) -> Deferred[Outcome]:
        """Call `decide`, and make its change durable and visible, all under one lock.

        Calls the watchers of leaders at the end. Errbacks StorageError; then nothing has changed.
        """
        return self.writer.run(self._change_topics, decide)

    async def _change_topics(self, decide: Callable[[], Change]) -> Outcome:
        topics, outcome, running = decide()
        if topics:
            await self.writer.put({topic_key(name): encode_topic(new) for name, new in topics.items()})
        moved = [move for name, new in topics.items() for move in moves(self.topics[name], new)]
        for topic in topics.values():
            self._show(topic)
        if running is not None:
            self._show_running(running)
        if moved:
            for watcher in list(self._watchers.values()):
                watcher(moved)
        return outcome

    def _show_running(self, running: tuple[int, ...]) -> None:
        controller_id = self.controller_id
        self.running = running
        self.writer.version += 1
        self.registered = tuple(sorted({*self.registered, *running}))
        if self.controller_id not in (controller_id, NO_LEADER):
            self.writer.leader_epoch += 1

    def unregister_broker(self, node_id: int) -> Deferred[Refusal | None]:
        """Remove a stopped broker from the registered brokers until it is started again. Fires with a
        refusal, or None for success.
        """
        return self.writer.run(self._unregister_broker, node_id)

    async def _unregister_broker(self, node_id: int) -> Refusal | None:
        refusal = refuse_to_unregister(node_id, self.registered, self.running)
        if refusal is None:
            self.registered = tuple(node for node in self.registered if node != node_id)
        return refusal

    def alter_configs(
        self, changes: Sequence[ConfigChange], node_id: int, *, validate_only: bool = False
    ) -> Deferred[list[Refusal | None]]:
        """Change configs of topics, brokers and groups in one durable write.

        node_id: the broker that was asked. Fires with a list: for each change a refusal, or None for
        success. A change is made whole or not at all. Errbacks StorageError; then nothing was changed.
        """
        return self.writer.run(self._alter_configs, changes, node_id, validate_only)

    async def _alter_configs(
        self, wanted: Sequence[ConfigChange], node_id: int, validate_only: bool
    ) -> list[Refusal | None]:
        broker, set_now = self.broker_configs(node_id), self._configs
        result = altered(wanted, node_id, self.topics, set_now.dynamic, set_now.groups, broker)
        topics, brokers, groups = result.topics, result.brokers, result.groups
        if not validate_only and (topics or brokers or groups):
            changes: Changes = {topic_key(topic.name): encode_topic(topic) for topic in topics}
            changes |= {BROKER_CONFIGS + name.encode(): _encode(now) for name, now in brokers.items()}
            changes |= {
                GROUP_CONFIGS + stored_key(name): encode_group(name, now) for name, now in groups.items()
            }
            await self.writer.put(changes)
            self._show_configs(topics, brokers)
            self._show_group_configs(groups)
        return result.outcome

    def _show_group_configs(self, groups: Mapping[str, dict[str, str]]) -> None:
        self._configs.alter_groups(groups)
        if groups:
            for watcher in self._group_watchers:
                watcher(groups.keys())

    def _show_configs(self, topics: Sequence[Topic], brokers: Mapping[str, dict[str, str]]) -> None:
        """Put durable configs into force."""
        for topic in topics:
            self._configs.forget_logs_of(topic)
            self._show(topic)
        if brokers:
            self._configs.alter(brokers)
            for topic in self.topics.values():
                self._show(topic)

    def _show(self, topic: Topic) -> None:
        self.topics[topic.name] = self._by_id[topic.topic_id] = topic
        self.writer.version += 1
        self._metric_names.add(topic.name)
        for partition in topic.partitions:
            config = self.log_config(topic, partition.leader)
            self._log.configure(partition.partition_no, config.cleanup)


def _new_acls(config: Config, writer: Writer) -> Acls | None:
    """The ACLs and their authorizer; None if none is configured. Only an authorizer needs the imports."""
    if not config.authorizer_class_name:
        return None
    from kshim.cluster.acls import Acls
    from kshim.cluster.authorizer import Authorizer
    from kshim.configs.access import super_users

    allow_everyone = config.allow_everyone_if_no_acl_found
    return Acls(writer, Authorizer(super_users(config.super_users), allow_everyone=allow_everyone))


def _encode(configs: Mapping[str, str]) -> bytes | None:
    return json.dumps(configs).encode() if configs else None
