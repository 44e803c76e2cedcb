"""Starts the server's parts in order: store, cluster, coordinators, listeners; stops them in reverse."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, DeferredLock, gatherResults

from kshim import __version__
from kshim.answering import Broker
from kshim.answering.replies import Replies
from kshim.callers import Client
from kshim.callers.arrivals import Arrivals
from kshim.callers.once import Once
from kshim.cluster import GROUP_METADATA_TOPIC, NO_LEADER, Cluster
from kshim.cluster.broker_configs import broker_text
from kshim.cluster.changes import Move
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.control.clock import SteeredClock
from kshim.control.commands import Commands, MadeLater
from kshim.control.socket import ControlSocket, control_path
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.loading import Leader, Loader
from kshim.coordination.transaction_runtime import TransactionRuntime
from kshim.fetching.sessions import FetchSessions
from kshim.network.connection import Measured
from kshim.network.dispatch import answer
from kshim.network.listeners import BrokerListeners, CannotListen, new_listeners, open_all
from kshim.network.places import Limits
from kshim.producing.appends import ProducerAppends
from kshim.producing.markers import write_marker
from kshim.quotas.quotas import Quotas
from kshim.recorder.moves import CoordinatorMoved
from kshim.recorder.recorder import Recorder
from kshim.storage.cleaning import Cleaning
from kshim.storage.clock import Clock
from kshim.storage.interfaces import Log, StorageError, Store
from kshim.storage.journal import LogJournal
from kshim.turns.aside import AsideThreads
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread

if TYPE_CHECKING:
    from kshim.answering.views import Answering
    from kshim.cluster.scram import KnownUsers
    from kshim.control.time import TimeSteering
    from kshim.faults.answers import Usual
    from kshim.http.listener import HttpListener
    from kshim.network.gate import GateContext
    from kshim.network.renewal import Renewal
    from kshim.network.traffic import Traffic
    from kshim.storage.reactor import Reactor

logger = logging.getLogger(__name__)


Addresses = dict[str, list[Endpoint]]
"""All brokers' addresses, by listener name."""


class StartError(Exception):
    """The server cannot start. str() is one line for the user."""


class Server:
    """All brokers of one process. Started once, stopped once."""

    def __init__(self, config: Config, reactor: Reactor, store: Store | None = None) -> None:
        """reactor: accepts the connections, and is the clock until that is steered. store: used instead of
        the one that `config` names.
        """
        self._config = config
        self._reactor = reactor
        self._clock = SteeredClock(reactor)
        self._time: TimeSteering | None = None
        self._store = store or new_store(config, reactor)
        self._loader = Loader(reactor)
        self._groups: GroupRuntime | None = None
        self._transactions: TransactionRuntime | None = None
        self._cleaning: Cleaning | None = None
        self._listeners: dict[int, BrokerListeners] = {}
        self._control: ControlSocket | None = None
        self._renewal: Renewal | None = None
        self._http: HttpListener | None = None
        self.http_address: Endpoint | None = None
        """The page's address; None if it is not served."""
        self._aside = AsideThreads(reactor)
        self._rounds = Rounds(reactor)
        self._unread = Unread(reactor, self._rounds)
        self._once = Once(reactor)
        self._recorder = Recorder(
            lambda: int(self._clock.seconds() * 1000), most_bytes=config.group_rebalances_max_bytes
        )
        self._stop_lock = DeferredLock()
        self._stopped = False
        self._has_loaded = False

    def start(self) -> Deferred[Addresses]:
        """Start the server. Fires with the brokers' addresses once connections are accepted. Errbacks
        StartError; then nothing is left open.
        """
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> Addresses:
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
            self._groups = _new_groups(
                cluster, self._store, config, self._clock, self._loader, self._tell(cluster)
            )
            self._groups.start(_leaders(cluster))
            self._transactions = TransactionRuntime(
                cluster, self._store.log, config, self._clock, self._loader
            )
            follow = partial(_follow, groups=self._groups, log=self._store.log, recorder=self._recorder)
            cluster.watch_leaders(follow)
            cluster.watch_leaders(self._transactions.follow)
            cluster.watch_topics(self._groups.topic_changed)
            broker = Broker(
                node_id=config.node_id,
                config=config,
                cluster=cluster,
                log=self._store.log,
                groups=self._groups,
                transactions=self._transactions,
                clock=self._reactor,
                rounds=self._rounds,
                producers=ProducerAppends(self._store.log, config),
                fetch_sessions=FetchSessions(),
                quotas=Quotas(cluster.client_quotas, config, self._reactor),
                aside=self._aside,
                unread=self._unread,
                once=self._once,
                arrivals=Arrivals(self._reactor),
                replies=Replies(cluster.writer),
                wall_clock=self._clock,
                authorizer=None if cluster.acls is None else cluster.acls.authorizer,
            )
            self._transactions.start(partial(write_marker, broker))
            addresses = await self._listen(broker)
            interval_ms = config.log_retention_check_interval_ms
            self._cleaning = Cleaning(self._store.log, self._clock, interval_ms)
            self.loaded().addCallback(self._loaded)
        except (StorageError, CannotListen, StartError) as error:
            await self.stop()
            raise StartError(str(error)) from error
        logger.info(
            "kshim %s: node %s of cluster %s at %s, data in %s",
            __version__,
            ", ".join(map(str, cluster.node_ids)),
            cluster.cluster_id,
            _listed(addresses),
            config.log_dirs,
        )
        if self.http_address is not None:
            logger.info("the page is at http://%s/", self.http_address)
        return addresses

    def _tell(self, cluster: Cluster) -> Callable[[object], None]:
        """Return the function that records all that groups report."""
        recorder = self._recorder
        if not self._config.group_rebalances_topic_enable:
            return recorder.add
        from kshim.recorder.topic import RebalanceTopic

        topic = RebalanceTopic(cluster, self._store.log, self._aside, self._clock)

        def tell(what: object) -> None:
            recorder.add(what)
            topic.add(what)

        return tell

    async def _listen(self, broker: Broker) -> Addresses:
        """Accept connections from clients and from `kshim cluster`. Raises CannotListen."""
        config, cluster = self._config, broker.cluster
        brokers = {node_id: _as_node(broker, node_id) for node_id in cluster.node_ids}
        measured: Measured = partial
        traffic = None
        if config.http_listener is not None:
            from kshim.network.traffic import Traffic

            traffic = Traffic()
            measured = traffic.measured
        answers = {node_id: measured(answer, each) for node_id, each in brokers.items()}
        gates = gates_of(broker, cluster.scram_users)
        self._listeners = new_listeners(
            answers,
            config,
            self._reactor,
            self._rounds,
            self._unread,
            self._once,
            partial(_limits, cluster),
            cluster.client_quotas,
            gates,
        )
        await open_all(self._listeners.values())
        self._renew_certificates()
        commands = MadeLater(partial(self._commands, broker, brokers, measured))
        path = control_path(config)
        if path is not None:
            self._control = ControlSocket(path, commands, self._reactor)
            self._control.open()
        if config.http_listener is not None and traffic is not None:
            steering = commands if config.http_steering_enable else {}
            self._http = self._new_http(broker, brokers, traffic, steering)
            self.http_address = self._http.open(config.http_listener)
        return {
            listener.name: [each.addresses[listener.name] for each in self._listeners.values()]
            for listener in config.listener_configs
        }

    def _renew_certificates(self) -> None:
        """Begin to read certificates again when they change, if there are any."""
        found = [listener.tls for broker in self._listeners.values() for listener in broker]
        if with_tls := [tls for tls in found if tls is not None]:
            from kshim.network.renewal import Renewal

            self._renewal = Renewal(with_tls, self._reactor)
            self._renewal.start()

    def _new_http(
        self, broker: Broker, brokers: Mapping[int, Broker], traffic: Traffic, commands: Commands
    ) -> HttpListener:
        """Make the HTTP listener. Imported only now, because it needs twisted.web."""
        from kshim.http.facts import Facts
        from kshim.http.listener import HttpListener

        facts = Facts(
            cluster=broker.cluster,
            groups=broker.groups,
            ends=broker.log,
            listeners=self._listeners,
            quotas={node_id: each.quotas for node_id, each in brokers.items()},
            clock=self._reactor,
            rounds=self._rounds,
            wall_clock=self._clock,
            aside=self._aside,
            unread=self._unread,
            traffic=traffic,
            recorder=self._recorder,
            activity=self._store.activity,
            why_not_ready=self._why_not_ready,
            commands=commands,
        )
        return HttpListener(facts, self._config.http_token, self._reactor)

    def _why_not_ready(self) -> str:
        if self._stopped:
            return "the server stops"
        if not self._has_loaded:
            return "coordinators are still loading what is stored"
        return self._store.activity().failure

    def _commands(self, broker: Broker, brokers: Mapping[int, Broker], measured: Measured) -> Commands:
        """Return the commands that other processes may run on this server."""
        from kshim.control.brokers import BrokerSteering
        from kshim.control.coordinators import Coordinators, leader
        from kshim.control.faults import FaultSteering
        from kshim.control.groups import GroupSteering
        from kshim.control.members import MemberSteering
        from kshim.control.offsets import ListedOffsets, OffsetSteering
        from kshim.control.overview import Overview
        from kshim.control.recorder import Questions
        from kshim.control.time import TimeSteering
        from kshim.control.users import UserSteering

        assert self._groups is not None
        assert self._transactions is not None
        clock, reactor = self._clock, self._reactor
        groups, coordinators = (
            GroupSteering(broker.groups),
            Coordinators(broker, partial(leader, broker.cluster)),
        )
        aside, rounds, recorder = self._aside, self._rounds, self._recorder
        overview = Overview(broker.cluster, broker.groups, broker.log, recorder, aside, rounds, clock)
        self._time = TimeSteering(clock, reactor, self._groups, self._transactions, self._clients)
        return {
            **BrokerSteering(broker.cluster, broker.groups, self._listeners).commands(),
            **groups.commands(),
            **overview.commands(),
            **Questions(recorder, groups, aside, rounds, reactor, clock).commands(),
            **MemberSteering(coordinators).commands(),
            **OffsetSteering(broker.cluster, coordinators, ListedOffsets(broker).at).commands(),
            **FaultSteering(brokers, self._listeners, measured, self._recorder.add, _usual).commands(),
            **self._time.commands(),
            **UserSteering(broker.cluster.scram_users).commands(),
        }

    def _clients(self) -> list[Client]:
        """Return the connected clients of all brokers."""
        return [client for listener in self._listeners.values() for client in listener.clients()]

    def loaded(self) -> Deferred[None]:
        """Fires when no coordinator has anything left to load, at the latest at the stop. In large data
        directories that is some time after the start.
        """
        return self._loader.when_done()

    def _loaded(self, _: None) -> None:
        self._has_loaded = True
        if self._cleaning is not None and not self._stopped:
            self._cleaning.start()  # it would slow loading, and may change what is read

    def stop(self) -> Deferred[None]:
        """Accept no more connections, finish the requests under way, close the store. Every call fires when
        that is done.
        """
        return self._stop_lock.run(self._stop)

    async def _stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._http is not None:
            await self._http.close()
        if self._control is not None:
            await self._control.close()
        if self._time is not None:
            self._time.stop()
        if self._renewal is not None:
            self._renewal.stop()
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


def gates_of(broker: Answering, users: KnownUsers) -> Mapping[str, GateContext]:
    """Return the gates of the listeners with SASL, by listener name. Raises StartError.

    They are imported only if there is such a listener: a plain server starts without.
    """
    if not any(listener.protocol.is_sasl for listener in broker.config.listener_configs):
        return {}
    from kshim.configs.sasl import WrongSasl
    from kshim.network.gates import new_gates

    try:
        return new_gates(broker, users)
    except WrongSasl as error:
        raise StartError(str(error)) from error


def _usual() -> Usual[Broker]:
    from kshim.faults.refusals import LOCAL

    return LOCAL


def _listed(addresses: Addresses) -> str:
    """Return the addresses for the log, with listener names if there are several listeners."""
    if len(addresses) == 1:
        return ", ".join(map(str, *addresses.values()))
    return ", ".join(f"{name}://{address}" for name, found in addresses.items() for address in found)


def new_store(config: Config, reactor: Reactor) -> Store:
    """The store that the configuration names; not yet opened."""
    if config.in_memory:
        from kshim.storage.memory import MemoryStore

        return MemoryStore()
    from kshim.storage.embedded import EmbeddedStore

    return EmbeddedStore(Path(config.log_dirs), reactor=reactor, sync=config.flush_policy == "commit")


def _leaders(cluster: Cluster) -> dict[int, Leader]:
    """Return the leader of each shard of the group coordinator; shards without a leader are left out."""
    return {
        partition.index: Leader(partition.leader, partition.leader_epoch)
        for partition in cluster.group_metadata_topic.partitions
        if partition.leader >= 0
    }


def _as_node(broker: Broker, node_id: int) -> Broker:
    """Return the broker `node_id`. It shares all with `broker` except its fetch sessions and quotas."""
    quotas = broker.quotas.of_another_broker()
    return replace(broker, node_id=node_id, fetch_sessions=FetchSessions(), quotas=quotas)


def _limits(cluster: Cluster, node_id: int) -> Limits:
    """Return a function that looks up a broker's current limits of connections."""
    return lambda name: broker_text(name, cluster.broker_configs(node_id))


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


def _new_groups(
    cluster: Cluster,
    store: Store,
    config: Config,
    clock: Clock,
    loader: Loader,
    tell: Callable[[object], None],
) -> GroupRuntime:
    partitions = cluster.group_metadata_topic.partitions
    journal = LogJournal(store.log, [partition.partition_no for partition in partitions])
    return GroupRuntime(new_coordinator(config, len(partitions)), journal, clock, loader, tell)
