"""Starts the server's parts in order: store, cluster, coordinators, listeners; stops them in reverse."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock, gatherResults

from kshim import __version__
from kshim.cluster import GROUP_METADATA_TOPIC, NO_LEADER, Cluster
from kshim.cluster.broker_configs import broker_text
from kshim.cluster.changes import Move
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.control.socket import ControlSocket, control_path
from kshim.control.steering import Steering
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.loading import Leader, Loader
from kshim.coordination.markers import write_marker
from kshim.coordination.transaction_runtime import TransactionRuntime
from kshim.fetching.sessions import FetchSessions
from kshim.network.dispatch import answer
from kshim.network.listeners import CannotListen, Listener, new_listeners, open_all
from kshim.network.places import Limits
from kshim.producing.appends import ProducerAppends
from kshim.requests import Broker
from kshim.requests.arrivals import Arrivals
from kshim.requests.aside import AsideThread
from kshim.requests.once import Once
from kshim.requests.unread import Unread
from kshim.storage.cleaning import Cleaning
from kshim.storage.interfaces import Log, StorageError, Store
from kshim.storage.journal import LogJournal

logger = logging.getLogger(__name__)


class StartError(Exception):
    """The server cannot start. str() is one line for the user."""


class Server:
    """All brokers of one process: `start()` it once, `stop()` it once."""

    def __init__(self, config: Config, reactor: Any, store: Store | None = None) -> None:
        """reactor: accepts the connections, and is the clock. store: used instead of the one that `config`
        names.
        """
        self._config = config
        self._reactor = reactor
        self._store = store or new_store(config, reactor)
        self._loader = Loader(reactor)
        self._groups: GroupRuntime | None = None
        self._transactions: TransactionRuntime | None = None
        self._cleaning: Cleaning | None = None
        self._listeners: dict[int, Listener] = {}
        self._control: ControlSocket | None = None
        self._aside = AsideThread(reactor)
        self._unread = Unread(reactor)
        self._once = Once(reactor)
        self._stop_lock = DeferredLock()
        self._stopped = False

    def start(self) -> Deferred[list[Endpoint]]:
        """Fires with the brokers' addresses once connections are accepted. Errbacks StartError; then nothing
        is left open.
        """
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> list[Endpoint]:
        config = self._config
        try:
            self._store.open()
        except StorageError as error:
            raise StartError(str(error)) from error
        try:
            cluster = Cluster(self._store.metadata, self._store.log, config)
            await cluster.start()
            if self._stopped:
                raise StartError("stopped before it was ready")
            self._groups = _new_groups(cluster, self._store, config, self._reactor, self._loader)
            self._groups.start(_leaders(cluster))
            self._transactions = TransactionRuntime(
                cluster, self._store.log, config, self._reactor, self._loader
            )
            cluster.watch_leaders(partial(_follow, groups=self._groups, log=self._store.log))
            cluster.watch_leaders(self._transactions.follow)
            broker = Broker(
                node_id=config.node_id,
                config=config,
                cluster=cluster,
                log=self._store.log,
                groups=self._groups,
                transactions=self._transactions,
                clock=self._reactor,
                producers=ProducerAppends(self._store.log, config),
                fetch_sessions=FetchSessions(),
                aside=self._aside,
                unread=self._unread,
                once=self._once,
                arrivals=Arrivals(self._reactor),
            )
            self._transactions.start(partial(write_marker, broker))
            addresses: list[Endpoint] = await self._listen(broker)
            interval_ms = config.log_retention_check_interval_ms
            self._cleaning = Cleaning(self._store.log, self._reactor, interval_ms)
            self.loaded().addCallback(self._loaded)
        except (StorageError, CannotListen, StartError) as error:
            await self.stop()
            raise StartError(str(error)) from error
        logger.info(
            "kshim %s: node %s of cluster %s at %s, data in %s",
            __version__,
            ", ".join(map(str, cluster.node_ids)),
            cluster.cluster_id,
            ", ".join(map(str, addresses)),
            config.log_dirs,
        )
        return addresses

    async def _listen(self, broker: Broker) -> list[Endpoint]:
        """Accept connections from clients and from `kshim cluster`. Raises CannotListen."""
        config, cluster = self._config, broker.cluster
        answers = {node_id: partial(answer, _as_node(broker, node_id)) for node_id in cluster.node_ids}
        self._listeners = new_listeners(
            answers, config, self._reactor, self._unread, self._once, partial(_limits, cluster)
        )
        addresses: list[Endpoint] = await open_all(self._listeners, config.listeners)
        path = control_path(config)
        if path is not None:
            steering = Steering(cluster, broker.groups, self._listeners)
            self._control = ControlSocket(path, steering, self._reactor)
            self._control.open()
        return addresses

    def loaded(self) -> Deferred[None]:
        """Fires when no coordinator has anything left to load: in large data directories some time after the
        start, but not before the stop.
        """
        return self._loader.when_done()

    def _loaded(self, _: None) -> None:
        if self._cleaning is not None and not self._stopped:
            self._cleaning.start()  # it would take time from loading, and may change what is read

    def stop(self) -> Deferred[None]:
        """Accept nothing more, finish the requests under way, close the store. Each call fires when that is
        done.
        """
        return self._stop_lock.run(self._stop)

    async def _stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._control is not None:
            await self._control.close()
        for listener in self._listeners.values():
            await listener.close()
        for listener in self._listeners.values():
            listener.drain()
        if self._cleaning is not None:
            self._cleaning.stop()
        if self._transactions is not None:
            self._transactions.stop()
        if self._groups is not None:
            self._groups.stop()
        self._aside.stop()
        await self._store.close()
        await gatherResults([listener.disconnect() for listener in self._listeners.values()])


def new_store(config: Config, reactor: Any) -> Store:
    """The store that the configuration names; not yet opened."""
    if config.in_memory:
        from kshim.storage.memory import MemoryStore

        return MemoryStore()
    from kshim.storage.embedded import EmbeddedStore

    return EmbeddedStore(Path(config.log_dirs), reactor=reactor, sync=config.flush_policy == "commit")


def _leaders(cluster: Cluster) -> dict[int, Leader]:
    """The leader of each shard of the group coordinator, by shard; shards without a leader are left out."""
    return {
        partition.index: Leader(partition.leader, partition.leader_epoch)
        for partition in cluster.group_metadata_topic.partitions
        if partition.leader >= 0
    }


def _as_node(broker: Broker, node_id: int) -> Broker:
    """The broker `node_id`; it shares everything with `broker` except its fetch sessions."""
    return replace(broker, node_id=node_id, fetch_sessions=FetchSessions())


def _limits(cluster: Cluster, node_id: int) -> Limits:
    """The limits of a broker's connections, as its configs have them at the moment."""
    return lambda name: broker_text(name, cluster.broker_configs(node_id))


def _follow(moves: Sequence[Move], groups: GroupRuntime, log: Log) -> None:
    """Load the shards that have a new leader, unload those without one, and wake fetches parked at the old
    one.
    """
    for topic, _, after in moves:
        if topic.name == GROUP_METADATA_TOPIC and after.leader == NO_LEADER:
            groups.unload(after.index, after.leader_epoch)
        elif topic.name == GROUP_METADATA_TOPIC:
            leader = Leader(after.leader, after.leader_epoch)
            groups.load(after.index, leader).addErrback(lambda _: None)  # already logged
        log.wake(after.partition_no)


def _new_groups(cluster: Cluster, store: Store, config: Config, reactor: Any, loader: Loader) -> GroupRuntime:
    partitions = cluster.group_metadata_topic.partitions
    journal = LogJournal(store.log, [partition.partition_no for partition in partitions])
    return GroupRuntime(new_coordinator(config, len(partitions)), journal, reactor, loader)
