"""The parts of kshim in front of an upstream, started in order (contact, ports, groups) and stopped in
reverse.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from twisted.internet.defer import Deferred, DeferredLock, gatherResults

from kshim import __version__
from kshim.answering.replies import Replies
from kshim.callers.arrivals import Arrivals
from kshim.callers.once import Once
from kshim.cluster.broker_configs import BrokerConfigs, broker_configs, broker_text
from kshim.cluster.scram import KnownUsers
from kshim.cluster.settings import QuotaTable
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.upstream import WrongUpstreamProperty, upstream_security
from kshim.control.clock import SteeredClock
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.coordination.loading import Loader
from kshim.network.connection import Measured
from kshim.network.listeners import BrokerListeners, CannotListen
from kshim.quotas.quotas import Quotas
from kshim.recorder.recorder import Recorder
from kshim.service import Addresses, StartError, gates_of
from kshim.storage.clock import Timer
from kshim.storage.interfaces import StorageError
from kshim.turns import Turn
from kshim.turns.aside import AsideThreads
from kshim.turns.rounds import Rounds
from kshim.turns.slices import Slices
from kshim.turns.unread import Unread
from kshim.upstream.brokers import Brokers
from kshim.upstream.connector import Connector
from kshim.upstream.contact import CONNECT_S, Contact
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.ends import Ends
from kshim.upstream.front import Front
from kshim.upstream.here import HERE, Here
from kshim.upstream.indexes import Indexes, WrongUpstream
from kshim.upstream.interfaces import GroupShards, Upstream
from kshim.upstream.link import Link, LinkError
from kshim.upstream.merged_groups import MergedGroups
from kshim.upstream.mirror import Mirror
from kshim.upstream.outside import Outside
from kshim.upstream.own_topic import OwnTopic
from kshim.upstream.passage import Passage
from kshim.upstream.ports import Ports
from kshim.upstream.relay import Relay, Relays
from kshim.upstream.session import LoginFailed
from kshim.upstream.settings import UpstreamSettings
from kshim.upstream.shards.mirrored import USED_TWICE, MirroredOffsets
from kshim.upstream.shards.renewal import Renewal
from kshim.upstream.shards.sharing import SharedShards
from kshim.upstream.topics import Topics
from kshim.upstream.transactions import UpstreamTransactions
from kshim.upstream.upstream_groups import UpstreamGroups
from kshim.upstream.versions import BrokerVersions
from schemas.api_key import ApiKey
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from kshim.network.traffic import Traffic
    from kshim.storage.reactor import Reactor

logger = logging.getLogger(__name__)

LOOK_S = 2.0
"""How often the upstream is asked which brokers run."""
SILENT_S = 8.0
"""The server is not ready after so long without an answer: its clients would wait for the upstream, too."""
OLDEST_METADATA = 10
"""The first version of Metadata that has topic ids: Kafka 2.8."""
MOST_RESPONSE_BYTES = 2**31 - 1

NewShards = Callable[[Config, Any, Upstream, UpstreamCoordinators, MirroredOffsets | None, int], GroupShards]
"""Makes a process's shards from (config, reactor, upstream, coordinators, mirrored, node_id).

mirrored: copies commits to the upstream; None if that is switched off. node_id: this process's id in the
runtime.
"""


class UpstreamServer:
    """The server. Like `kshim.service.Server`, it is started once and stopped once."""

    def __init__(self, config: Config, reactor: Reactor, new_shards: NewShards = SharedShards) -> None:
        """new_shards: makes the object that keeps the groups."""
        self._config = config
        self._reactor = reactor
        self._clock = SteeredClock(reactor)
        self._connector = Connector(reactor, upstream_security(config.given))
        self._contact = Contact(self._connector, config.upstream)
        self._topics = Topics(self._contact.ask, reactor)
        self._mirror = Mirror(self._topics)
        self._coordinators = UpstreamCoordinators(self._contact)
        self._upstream_groups = UpstreamGroups(reactor, self._coordinators)
        self._once = Once(reactor)
        self._mirrored: MirroredOffsets | None = None
        if config.upstream_offsets_mirror_enable:
            self._mirrored = MirroredOffsets(reactor, self._upstream_groups, self._once)
            self._mirrored.topic_id_of = self._topics.id_of
        self._shards = new_shards(config, reactor, self._contact, self._coordinators, self._mirrored, HERE)
        self._own = OwnTopic(self._shards.topic)
        self._relays = Relays(self._new_passage, self._own.is_first)
        self._transactions = UpstreamTransactions(self._coordinators, self._shards)
        self._loader = Loader(reactor)
        self._aside = AsideThreads(reactor)
        self._rounds = Rounds(reactor)
        self._unread = Unread(reactor, self._rounds)
        self._recorder = Recorder(self._now_ms, most_bytes=config.group_rebalances_max_bytes)
        self._quotas = QuotaTable()
        limits = partial(_limit, broker_configs(config, config.node_id))
        self._ports = Ports(config, reactor, self._rounds, self._unread, self._once, limits, self._quotas)
        self._indexes = Indexes(None if config.in_memory else Path(config.log_dirs))
        self._known = Brokers(self._indexes, self._open_port, lambda: bool(self._shards.fellows()))
        self._settings = UpstreamSettings(self._coordinators, self._running, self._once)
        self._renewal: Renewal | None = None
        self._ends = Ends(reactor, self._contact, self._topics.by_name, self._known.address)
        self._brokers: dict[int, Here] = {}
        """The broker behind each port, by the upstream broker's node id."""
        self._groups: GroupRuntime | None = None
        self._here: Here | None = None
        self._merged: Here | None = None
        """Like `_here`, but with the groups of both sides; it answers clients."""
        self._front: Front | None = None
        self._outside: Outside | None = None
        self._traffic: Traffic | None = None
        self._measured: Measured = partial
        self._look_later: Timer | None = None
        self._stop_lock = DeferredLock()
        self._is_stopped = False
        self._is_ready = False
        self._answered_s = 0.0
        """When the upstream last answered which brokers run."""
        self._is_silent = False
        """True if the upstream did not answer the last question."""

    @property
    def http_address(self) -> Endpoint | None:
        """The page's address; None if it is not served."""
        return None if self._outside is None else self._outside.http_address

    # ---- start

    def start(self) -> Deferred[Addresses]:
        """Start the server. Fires with the addresses once connections are accepted. Errbacks StartError; then
        nothing is left open.
        """
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> Addresses:
        try:
            if not self._config.in_memory:
                Path(self._config.log_dirs).mkdir(parents=True, exist_ok=True)
            await self._connector.prepare()
            await self._first_look()
            await self._shards.prepare()
            found = await self._ask_who_runs()
            self._begin_groups()
            self._open_ports(found)
            assert self._groups is not None
            await self._shards.start(self._groups, lambda: self._ports.reached(self._known.anchor))
            if self._is_stopped:
                raise StartError("stopped before it was ready")
            self._open_outside()
        except (
            LinkError,
            LoginFailed,
            WrongUpstream,
            WrongUpstreamProperty,
            CannotListen,
            StorageError,
            StartError,
            OSError,
        ) as error:
            await self.stop()
            raise StartError(str(error)) from error
        self._look_later = self._reactor.callLater(LOOK_S, self._look)
        self._topics.start()
        Deferred.fromCoroutine(self._settings.check())
        self._answered_s, self._is_ready = self._reactor.seconds(), True
        addresses = self._ports.addresses()
        listed = ", ".join(str(address) for of_name in addresses.values() for address in of_name)
        logger.info("kshim %s: in front of cluster %s, at %s", __version__, self._mirror.cluster_id, listed)
        if self.http_address is not None:
            logger.info("the page is at http://%s/", self.http_address)
        return addresses

    async def _first_look(self) -> None:
        """Connect to the upstream, and check that it is new enough. Raises LinkError, StartError."""
        link = await self._contact.first(self._config.upstream_start_timeout_ms / 1000)
        if link.version(ApiKey.METADATA) < OLDEST_METADATA:
            raise StartError(
                f"upstream broker {link.address} is older than Kafka 2.8: it has no topic ids (Metadata v10)"
            )

    async def _ask_who_runs(self) -> MetadataResponse:
        """Ask for the running brokers, and for our own topic: it has a new id if somebody has recreated it.
        Raises LinkError.
        """
        own = MetadataRequestTopic(name=self._own.name)
        request = MetadataRequest(topics=(own,), allow_auto_topic_creation=False)
        response: MetadataResponse = await self._contact.ask(request)
        self._own.learn(response)
        self._answered_s, self._is_silent = self._reactor.seconds(), False
        return response

    def _forget_topics(self, groups: GroupRuntime, topics: Mapping[str, UUID]) -> None:
        """Delete the offsets of deleted topics, in slices."""
        groups.forget_topics(topics, Slices(self._rounds, Turn()).spend)

    def _begin_groups(self) -> None:
        """Make the group coordinator, and the brokers that use it."""
        config, clock, shards = self._config, self._clock, self._shards
        topic_id_of = self._topics.id_of
        coordinator = new_coordinator(config, shards.partitions, shards.record_bytes, topic_id_of)
        groups = self._groups = GroupRuntime(
            coordinator, shards.journal, clock, self._loader, self._note, shards.may_answer
        )
        groups.start({})
        self._topics.on_change(groups.topic_changed)
        self._topics.on_deletion(partial(self._forget_topics, groups))
        self._here = Here(
            config=config,
            cluster=self._mirror,
            groups=groups,
            transactions=self._transactions,
            clock=self._reactor,
            rounds=self._rounds,
            aside=self._aside,
            unread=self._unread,
            once=self._once,
            arrivals=Arrivals(self._reactor),
            replies=Replies(self._mirror),
            wall_clock=clock,
            quotas=Quotas(self._quotas, config, self._reactor),
        )
        if self._mirrored is not None:
            self._renewal = self._new_renewal(self._mirrored, groups)
        has_twins = self._mirrored is not None
        merged = MergedGroups(groups, self._upstream_groups, self._topics, self._once, has_twins=has_twins)
        self._merged = replace(self._here, groups=merged)
        self._front = Front(
            self._merged,
            self._known,
            self._topics,
            shards,
            self._upstream_groups,
            self._own,
            self._relays,
            BrokerVersions(self._reactor, self._link_to),
        )

    def _new_renewal(self, mirrored: MirroredOffsets, groups: GroupRuntime) -> Renewal:
        now_ms, retention_ms = self._now_ms, self._settings.retention_ms
        renewal = Renewal(
            self._reactor, now_ms, groups, self._upstream_groups, mirrored, retention_ms, self._once
        )
        mirrored.watch = renewal.soon
        return renewal

    def _note(self, what: object) -> None:
        """Record an event of a group. The offsets that expired are deleted at the upstream, too."""
        self._recorder.add(what)
        if self._mirrored is not None and isinstance(what, ExpiryReport):
            self._mirrored.expired(what.group_id, what.offsets)

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)

    def _link_to(self, node_id: int) -> Deferred[Link]:
        return self._contact.connect(self._known.address(node_id), CONNECT_S)

    def _running(self) -> dict[int, Endpoint]:
        """The addresses of the running upstream brokers, by node id."""
        return {node_id: self._known.address(node_id) for node_id in self._known.running}

    def _open_ports(self, found: MetadataResponse) -> None:
        """Open the ports of all running brokers. Raises CannotListen, WrongUpstream, StartError."""
        if self._config.http_listener is not None:
            from kshim.network.traffic import Traffic

            self._traffic = Traffic()
            self._measured = self._traffic.measured
        assert self._here is not None
        self._ports.gates = gates_of(self._here, KnownUsers())
        self._indexes.open(found.cluster_id or "")
        self._told(found)
        for fault in self._known.faults.values():
            raise CannotListen(fault)
        self._contact.addresses = self._known.addresses

    def _open_outside(self) -> None:
        assert self._here is not None
        assert self._merged is not None
        assert self._groups is not None
        assert self._front is not None
        self._outside = Outside(
            here=self._here,
            merged=self._merged,
            upstream_groups=self._upstream_groups,
            notice=self._notice,
            ends=self._ends,
            topics=self._topics,
            groups=self._groups,
            upstream=self._contact,
            answer=self._front.answer,
            relays=self._relays,
            brokers=self._brokers,
            listeners=self._ports.listeners,
            measured=self._measured,
            traffic=self._traffic,
            recorder=self._recorder,
            clock=self._clock,
            reactor=self._reactor,
            why_not_ready=self._why_not_ready,
        )
        self._outside.open()

    def _notice(self, group_id: str) -> str:
        mirrored = self._mirrored
        return f"It {USED_TWICE}." if mirrored is not None and group_id in mirrored.in_use else ""

    def _why_not_ready(self) -> str:
        if self._is_stopped:
            return "the server stops"
        if not self._is_ready:
            return "the server starts"
        is_silent = self._reactor.seconds() - self._answered_s > SILENT_S
        return "the upstream does not answer" if self._is_silent or is_silent else ""

    # ---- running brokers

    def _told(self, found: MetadataResponse) -> None:
        running = {each.node_id: Endpoint(each.host, each.port) for each in found.brokers}
        self._known.told(running)
        self._mirror.told(found.cluster_id or "", self._known.running)

    def _look(self) -> None:
        Deferred.fromCoroutine(self._look_again())

    async def _look_again(self) -> None:
        try:
            found = await self._ask_who_runs()
        except LinkError as error:
            self._is_silent = True
            logger.log(self._once.level("upstream"), "the upstream does not answer: %s", error)
        else:
            if not self._is_stopped:
                self._told(found)
        if not self._is_stopped:
            self._look_later = self._reactor.callLater(LOOK_S, self._look)

    def _open_port(self, node_id: int, index: int) -> BrokerListeners:
        assert self._front is not None
        assert self._here is not None
        broker = replace(self._here, node_id=node_id)
        answer = self._measured(self._front.answer, broker)
        port = self._ports.open(node_id, index, answer, partial(self._relays.new, node_id))
        self._brokers[node_id] = broker
        return port

    def _new_passage(self, node_id: int, relay: Relay) -> Passage:
        address = self._known.address(node_id)
        passage = Passage(relay, str(address), MOST_RESPONSE_BYTES, self._reactor)
        self._connector.connect(passage, address, CONNECT_S)
        return passage

    # ---- stop

    def loaded(self) -> Deferred[None]:
        """Fires when no shard is being loaded any more."""
        return self._loader.when_done()

    def stop(self) -> Deferred[None]:
        """Accept no more connections, finish the requests under way, give up the shards."""
        return self._stop_lock.run(self._stop)

    async def _stop(self) -> None:
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._outside is not None:
            await self._outside.close()
        if self._look_later is not None and self._look_later.active():
            self._look_later.cancel()
        self._topics.stop()
        if self._renewal is not None:
            self._renewal.stop()
        listeners = list(self._ports.listeners.values())
        for listener in listeners:
            await listener.close()
        for listener in listeners:
            listener.drain()
        if self._groups is not None:
            self._groups.stop()
        if self._mirrored is not None:
            await self._mirrored.stop()
        await self._shards.stop()
        self._aside.stop()
        await gatherResults([listener.disconnect() for listener in listeners])
        self._ends.stop()
        self._coordinators.close()
        self._contact.stop()
        self._connector.stop()


def _limit(configs: BrokerConfigs, name: str) -> str:
    """Return a limit of connections, as it is configured."""
    return broker_text(name, configs)
