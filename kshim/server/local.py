"""The local backend: records and groups in one store, and all brokers in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kshim.answering import Broker
from kshim.answering.replies import Replies
from kshim.callers.arrivals import Arrivals
from kshim.cluster import GROUP_METADATA_TOPIC, NO_LEADER, Cluster
from kshim.coordination.cluster_topics import ClusterTopics
from kshim.coordination.group_configs import ValuesOfGroups
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.loading import Leader
from kshim.coordination.transaction_runtime import TransactionRuntime
from kshim.fetching.sessions import FetchSessions
from kshim.network.dispatch import answer
from kshim.network.listeners import open_all
from kshim.producing.appends import ProducerAppends
from kshim.producing.markers import write_marker
from kshim.quotas.quotas import Quotas
from kshim.recorder.moves import CoordinatorMoved
from kshim.storage.cleaning import Cleaning
from kshim.storage.journal import LogJournal

if TYPE_CHECKING:
    from kshim.cluster import Topic
    from kshim.cluster.broker_configs import BrokerConfigs
    from kshim.cluster.changes import Move
    from kshim.cluster.described import DescribedConfig
    from kshim.cluster.scram import KnownUsers
    from kshim.cluster.settings import QuotaTable
    from kshim.configs.config import Config
    from kshim.configs.endpoint import Endpoint
    from kshim.control.commands import Commands
    from kshim.control.others import Others
    from kshim.faults.answers import Usual
    from kshim.http.asking import Ask
    from kshim.http.families import Figure
    from kshim.recorder.recorder import Recorder
    from kshim.server.parts import Parts
    from kshim.server.ports import Ports
    from kshim.storage.interfaces import Activity, Log, PartitionEnds, Store
    from kshim.storage.reactor import Reactor


class LocalBackend:
    """Implements `Backend`."""

    look: Callable[[], Deferred[None]] | None = None
    others: Others | None = None
    cluster: Cluster
    """Made when the store is open, as are the coordinators."""
    groups: GroupRuntime
    transactions: TransactionRuntime

    relayed: None = None
    """Clients authenticate here."""

    def __init__(self, parts: Parts, store: Store) -> None:
        self._parts = parts
        self._store = store
        self._has_loaded = False

    # ---- start

    async def open(self) -> None:
        self._store.open()
        self._parts.stops.push_async_callback(self._store.close)
        self.cluster = Cluster(self._store.metadata, self._store.log, self._parts.config)
        await self.cluster.start()

    def new_broker(self) -> Broker:
        parts, cluster, log = self._parts, self.cluster, self._store.log
        self._begin_coordinators()
        broker = Broker(
            node_id=parts.config.node_id,
            config=parts.config,
            cluster=cluster,
            log=log,
            groups=self.groups,
            transactions=self.transactions,
            clock=parts.reactor,
            rounds=parts.rounds,
            producers=ProducerAppends(log, parts.config),
            fetch_sessions=FetchSessions(),
            quotas=Quotas(cluster.client_quotas, parts.config, parts.reactor),
            aside=parts.aside,
            unread=parts.unread,
            once=parts.once,
            arrivals=Arrivals(parts.reactor),
            replies=Replies(cluster.writer),
            wall_clock=parts.clock,
            authorizer=None if cluster.acls is None else cluster.acls.authorizer,
        )
        self.transactions.start(partial(write_marker, broker))
        return broker

    def _begin_coordinators(self) -> None:
        """Make both coordinators, and begin to load the groups. The transactions need a broker first."""
        parts, cluster, log = self._parts, self.cluster, self._store.log
        partitions = cluster.group_metadata_topic.partitions
        journal = LogJournal(log, [partition.partition_no for partition in partitions])
        topics = ClusterTopics(cluster)
        configs = ValuesOfGroups(cluster.group_values, cluster.node_ids[0])
        coordinator = new_coordinator(parts.config, len(partitions), topics=topics, configs=configs)
        groups = self.groups = GroupRuntime(coordinator, journal, parts.clock, parts.loader, self._note())
        parts.stops.callback(groups.stop)
        groups.start(_leaders(cluster))
        transactions = self.transactions = TransactionRuntime(
            cluster, log, parts.config, parts.clock, parts.loader
        )
        parts.stops.callback(transactions.stop)
        cluster.watch_leaders(partial(_follow, groups=groups, log=log, recorder=parts.recorder))
        cluster.watch_leaders(transactions.follow)
        cluster.watch_topics(groups.topic_changed)
        cluster.watch_group_configs(groups.group_configs_changed)

    def _note(self) -> Callable[[object], None]:
        """Return the function that records all that groups report."""
        parts, recorder = self._parts, self._parts.recorder
        if not parts.config.group_rebalances_topic_enable:
            return recorder.add
        from kshim.recorder.topic import RebalanceTopic

        topic = RebalanceTopic(self.cluster, self._store.log, parts.aside, parts.clock)

        def note(report: object) -> None:
            recorder.add(report)
            topic.add(report)

        return note

    async def listen(self, ports: Ports[Broker]) -> None:
        for node_id in self.cluster.node_ids:
            ports.add(_as_node(ports.broker, node_id), node_id - self._parts.config.node_id)
        await open_all(ports.listeners.values())

    def begin(self) -> None:
        parts = self._parts
        cleaning = Cleaning(self._store.log, parts.clock, parts.config.log_retention_check_interval_ms)
        parts.stops.callback(cleaning.stop)
        parts.loader.when_done().addCallback(self._loaded, cleaning)

    def _loaded(self, _: None, cleaning: Cleaning) -> None:
        self._has_loaded = True
        cleaning.start()  # it would slow loading, and may change what is read

    # ---- requests

    answer = staticmethod(answer)

    @property
    def quotas(self) -> QuotaTable:
        return self.cluster.client_quotas

    @property
    def users(self) -> KnownUsers:
        return self.cluster.scram_users

    def broker_configs(self, node_id: int) -> BrokerConfigs:
        return self.cluster.broker_configs(node_id)

    # ---- what people see and steer

    def usual(self) -> Usual[Broker]:
        from kshim.faults.refusals import LOCAL

        return LOCAL

    @property
    def ends(self) -> PartitionEnds:
        return self._store.log

    @property
    def is_behind(self) -> bool:
        return self.groups.is_behind or self.transactions.is_behind

    def http_opened(self, address: Endpoint) -> None:
        """See `Backend.http_opened`: nobody else asks there."""

    def leader(self, shard: int) -> int:
        return self.cluster.group_metadata_topic.partitions[shard].leader

    def commands(self, common: Commands, ports: Ports[Broker]) -> Commands:
        from kshim.control.brokers import BrokerSteering
        from kshim.control.coordinators import Coordinators
        from kshim.control.offsets import ListedOffsets, OffsetSteering
        from kshim.control.users import UserSteering

        cluster, coordinators = self.cluster, Coordinators(ports.broker, self.leader)
        return {
            **BrokerSteering(cluster, self.groups, ports.listeners).commands(),
            **OffsetSteering(cluster, coordinators, ListedOffsets(ports.broker).at).commands(),
            **UserSteering(cluster.scram_users).commands(),
        }

    def why_not_ready(self) -> str:
        if not self._has_loaded:
            return "coordinators are still loading what is stored"
        return self.activity().failure

    def figures(self) -> tuple[Figure, ...]:
        """See `Backend.figures`: there is nothing beside the store."""
        return ()

    def activity(self) -> Activity:
        return self._store.activity()

    def described(self, addresses: str) -> str:
        nodes = ", ".join(map(str, self.cluster.node_ids))
        directory = self._parts.config.log_dirs
        return f"node {nodes} of cluster {self.cluster.cluster_id} at {addresses}, data in {directory}"

    def ask(self, ports: Ports[Broker]) -> Ask:
        from kshim.server.asking import AskBroker

        listener = self._parts.config.listener_configs[0]
        return AskBroker(ports.broker, listener.bind)

    def topic_configs(self) -> Callable[[Topic], Iterable[DescribedConfig]]:
        from kshim.cluster.described import described_topic

        cluster = self.cluster
        return lambda topic: described_topic(topic.configs, cluster.broker_configs(cluster.node_ids[0]))

    def notice(self, group_id: str) -> str:
        return ""


def new_store(config: Config, reactor: Reactor) -> Store:
    """The store that the configuration names; not yet opened."""
    if config.in_memory:
        from kshim.storage.memory import MemoryStore

        return MemoryStore()
    from kshim.storage.embedded import EmbeddedStore

    return EmbeddedStore(Path(config.log_dirs), reactor=reactor, sync=config.flush_policy == "commit")


def _as_node(broker: Broker, node_id: int) -> Broker:
    """Return the broker `node_id`. It shares all with `broker` except its fetch sessions and quotas."""
    quotas = broker.quotas.of_another_broker()
    return replace(broker, node_id=node_id, fetch_sessions=FetchSessions(), quotas=quotas)


def _leaders(cluster: Cluster) -> dict[int, Leader]:
    """Return the leader of each shard of the group coordinator; shards without a leader are left out."""
    return {
        partition.index: Leader(partition.leader, partition.leader_epoch)
        for partition in cluster.group_metadata_topic.partitions
        if partition.leader >= 0
    }


def _follow(moves: Sequence[Move], groups: GroupRuntime, log: Log, recorder: Recorder) -> None:
    """Load the shards that have a new leader, unload those without one, and wake the fetches parked at the
    old leader.
    """
    for topic, before, after in moves:
        if topic.name == GROUP_METADATA_TOPIC:
            recorder.add(CoordinatorMoved(after.index, before.leader, after.leader))
        if topic.name == GROUP_METADATA_TOPIC and after.leader == NO_LEADER:
            groups.unload(after.index, after.leader_epoch)
        elif topic.name == GROUP_METADATA_TOPIC:
            leader = Leader(after.leader, after.leader_epoch)
            groups.load(after.index, leader).addErrback(lambda _: None)  # already logged
        log.wake(after.partition_no)
