"""The backend in front of an upstream: records are the upstream's, and kshim coordinates the groups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from twisted.internet.defer import Deferred

from kshim.answering.replies import Replies
from kshim.callers.arrivals import Arrivals
from kshim.cluster.broker_configs import broker_configs
from kshim.cluster.scram import KnownUsers
from kshim.cluster.settings import QuotaTable
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.upstream import upstream_security
from kshim.coordination.group_configs import ValuesOfGroups
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.network.listeners import BrokerListeners, CannotListen
from kshim.quotas.quotas import Quotas
from kshim.storage.interfaces import Activity
from kshim.turns import Turn
from kshim.turns.slices import Slices
from kshim.upstream.brokers import Brokers
from kshim.upstream.confirming import Confirming
from kshim.upstream.connector import Connector
from kshim.upstream.contact import CONNECT_S, Contact
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.draining import DRAINS, Draining
from kshim.upstream.ends import Ends
from kshim.upstream.every_topic import EveryTopic
from kshim.upstream.front import Front
from kshim.upstream.group_configs import UpstreamGroupConfigs
from kshim.upstream.group_ends import GroupEnds
from kshim.upstream.group_topics import GroupTopics
from kshim.upstream.here import HERE, Here
from kshim.upstream.identities import Identities
from kshim.upstream.indexes import Indexes
from kshim.upstream.interfaces import GroupShards, Upstream
from kshim.upstream.judging import Judging
from kshim.upstream.link import Link
from kshim.upstream.looking import Looking
from kshim.upstream.member_topics import MemberTopics
from kshim.upstream.mirror import Mirror
from kshim.upstream.missing import BY_ID, lacks
from kshim.upstream.others import OtherKshim
from kshim.upstream.own_topic import OwnTopic
from kshim.upstream.passages import Passages
from kshim.upstream.ports import UpstreamPorts
from kshim.upstream.relay import Relays
from kshim.upstream.relayed_logins import relayed_logins
from kshim.upstream.reloading import Reloading
from kshim.upstream.settings import UpstreamSettings
from kshim.upstream.shards.mirrored import USED_TWICE, MirroredOffsets
from kshim.upstream.shards.renewal import Renewal
from kshim.upstream.shards.sharing import SharedShards
from kshim.upstream.sides import Sides, new_sides
from kshim.upstream.soon_after import after_changes
from kshim.upstream.starting import first_look, start_errors
from kshim.upstream.topics import Topics
from kshim.upstream.transactions import UpstreamTransactions
from kshim.upstream.upstream_groups import UpstreamGroups
from kshim.upstream.versions import BrokerVersions
from schemas.messages.metadata import MetadataResponse

if TYPE_CHECKING:
    from kshim.control.commands import Commands
    from kshim.faults.answers import Usual
    from kshim.http.families import Figure
    from kshim.network.shared import Response
    from kshim.server.parts import Parts
    from kshim.server.ports import Ports
    from kshim.turns.promise import Promise

logger = logging.getLogger(__name__)

NewShards = Callable[[Config, Any, Upstream, UpstreamCoordinators, MirroredOffsets | None, int], GroupShards]
"""Makes a process's shards from (config, reactor, upstream, coordinators, mirrored, node_id).

mirrored: copies commits to the upstream; None if that is switched off. node_id: this process's id in the
runtime.
"""


class UpstreamBackend:
    """Implements `kshim.server.backend.Backend`."""

    groups: GroupRuntime
    """Made when the upstream answers, as are the following."""
    _merged: Here
    """Like the broker here, but with the groups of both sides. It answers clients."""
    _front: Front
    _group_ends: GroupEnds
    _every: EveryTopic
    _group_configs: UpstreamGroupConfigs
    _member_topics: MemberTopics
    _sides: Sides
    _ports: UpstreamPorts
    _draining: Draining

    def __init__(self, parts: Parts, new_shards: NewShards = SharedShards) -> None:
        """new_shards: makes the object that keeps the groups."""
        config, reactor = parts.config, parts.reactor
        self._parts = parts
        self._connector = Connector(reactor, upstream_security(config.given))
        self._identities = Identities(reactor, config) if config.upstream_identities_file else None
        self._reloading = Reloading(reactor, config.given, self._connector, self._identities)
        self._contact = Contact(self._connector, config.upstream)
        self._topics = Topics(self._contact.ask, reactor)
        self._confirming = Confirming(self._topics)
        self.quotas, self.users = QuotaTable(), KnownUsers()
        """Both are empty: the upstream has its own."""
        self.broker_configs = cache(partial(broker_configs, config))
        self._mirror = Mirror(self._topics)
        self._coordinators = UpstreamCoordinators(self._contact)
        self._upstream_groups = UpstreamGroups(reactor, self._coordinators)
        self._mirrored: MirroredOffsets | None = None
        if config.upstream_offsets_mirror_enable:
            self._mirrored = MirroredOffsets(reactor, self._upstream_groups, parts.once)
            self._mirrored.topic_id_of = self._topics.id_of
        self._shards = new_shards(config, reactor, self._contact, self._coordinators, self._mirrored, HERE)
        self.others = OtherKshim(reactor, config, self._shards, lambda each: self.groups.shard_for(each))
        self._own = OwnTopic(self._shards.topic)
        indexes = Indexes(None if config.in_memory else Path(config.log_dirs))
        self._known = Brokers(indexes, self._open_port, lambda: bool(self._shards.fellows()))
        passes_logins = config.upstream_sasl_pass_through_enable
        self._passages = Passages(
            reactor, self._connector, self._known, self._identities, passes_logins=passes_logins
        )
        self._relays = Relays(self._passages.new, self._own.is_first)
        self.relayed = relayed_logins(config, self._relays.by_client)
        self._settings = UpstreamSettings(self._coordinators, self._running, parts.once)
        self._looking = Looking(reactor, self._contact, self._own, self._take, parts.once)
        self.ends = Ends(reactor, self._contact, self._topics.by_name, self._known.address)

    # ---- start

    async def open(self) -> None:
        config, stops = self._parts.config, self._parts.stops
        with start_errors():
            if not config.in_memory:
                Path(config.log_dirs).mkdir(parents=True, exist_ok=True)
            for stop in (self._connector.stop, self._contact.stop, self._coordinators.close, self.ends.stop):
                stops.callback(stop)
            await self._connector.prepare()
            if self._identities is not None:
                stops.callback(self._identities.stop)
                await self._identities.prepare()
            self._reloading.prepare()
            timeout_s, passes = config.upstream_start_timeout_ms / 1000, config.passes_consumer_groups
            served = await first_look(self._contact, timeout_s, passes_consumers=passes)
            if lacks(served, BY_ID):
                self._mirror.group_version = 0
            stops.push_async_callback(self._shards.stop)
            if self._mirrored is not None:
                stops.push_async_callback(self._mirrored.stop)
            await self._shards.prepare()

    def new_broker(self) -> Here:
        parts, groups = self._parts, self._new_groups()
        here = Here(
            config=parts.config,
            cluster=self._mirror,
            groups=groups,
            transactions=UpstreamTransactions(self._coordinators, self._shards),
            clock=parts.reactor,
            rounds=parts.rounds,
            aside=parts.aside,
            unread=parts.unread,
            once=parts.once,
            arrivals=Arrivals(parts.reactor),
            replies=Replies(self._mirror),
            wall_clock=parts.clock,
            quotas=Quotas(self.quotas, parts.config, parts.reactor),
        )
        versions = BrokerVersions(parts.reactor, self._link_to)
        self._sides = new_sides(
            *(parts.config, parts.clock, groups, self._upstream_groups, self._topics, self._member_topics),
            *(self._mirrored, parts.once, parts.aside),
        )
        self._merged = replace(here, groups=self._sides.merged)
        self._front = Front(
            self._merged,
            self._known,
            self._confirming,
            self._shards,
            self._upstream_groups,
            self._own,
            self._relays,
            versions,
            after_changes(parts.reactor, self._member_topics.look, self._group_configs.look, parts.stops),
            self._sides,
            Judging(self._merged, versions, self._every, groups.wanted_topics.has_regexes, self._relays)
            if self._passages.are_clients
            else None,
        )
        self._group_ends = GroupEnds(here, self._topics, self.ends)
        return here

    def _new_groups(self) -> GroupRuntime:
        parts, shards, topics = self._parts, self._shards, self._topics
        every = EveryTopic(
            *(self._contact.link, topics, parts.aside, parts.rounds),
            lambda: self.groups.wanted_topics.has_regexes(),
        )
        seen = GroupTopics(topics, every, shards.topic)
        self._group_configs = UpstreamGroupConfigs(
            *(self._contact.ask, parts.reactor, self.broker_configs(HERE)),
            lambda: self.groups.wanted_topics.group_ids(),
            parts.once,
        )
        coordinator = new_coordinator(
            *(parts.config, shards.partitions, shards.record_bytes, topics.id_of, seen),
            ValuesOfGroups(self._group_configs.values, HERE),
        )
        groups = self.groups = GroupRuntime(
            coordinator, shards.journal, parts.clock, parts.loader, self._note, shards.may_answer
        )
        self._every = every
        self._member_topics = MemberTopics(groups, topics, every, self._confirming, self._group_configs)
        self._group_configs.changed = groups.group_configs_changed
        topics.wanted, topics.is_wanted = groups.wanted_topics.names, groups.wanted_topics.is_wanted
        groups.shards.prepare = self._member_topics.before_serving
        parts.stops.callback(groups.stop)
        groups.start({})
        topics.on_change(groups.topic_changed)
        every.created = groups.topics_created
        topics.on_deletion(self._forget_topics)
        if self._mirrored is not None:
            retention_ms, upstream_groups = self._settings.retention_ms, self._upstream_groups
            renewal = Renewal(
                parts.reactor, parts.now_ms, groups, upstream_groups, self._mirrored, retention_ms, parts.once
            )
            self._mirrored.watch = renewal.soon
            parts.stops.callback(renewal.stop)
        return groups

    def _note(self, report: object) -> None:
        """Record an event of a group. The offsets that expired are deleted at the upstream, too."""
        self._parts.recorder.add(report)
        if self._mirrored is not None and isinstance(report, ExpiryReport):
            self._mirrored.expired(report.group_id, report.offsets)

    def _forget_topics(self, topics: Mapping[str, UUID]) -> None:
        """Delete the offsets of deleted topics, in slices."""
        self.groups.forget_topics(topics, Slices(self._parts.rounds, Turn()).spend)

    async def listen(self, ports: Ports[Here]) -> None:
        self._known.names = self._parts.config.broker_names
        self._ports = UpstreamPorts(ports, self._known)
        self._draining = Draining(
            self._parts.reactor,
            self._shards,
            lambda: [each for listeners in ports.listeners.values() for each in listeners.connections],
            self._parts.config.upstream_drain_timeout_ms / 1000,
        )
        with start_errors():
            found = await self._looking.ask()
            self._known.open(found.cluster_id or "")
            self._take(found)
            for fault in self._known.faults.values():
                raise CannotListen(fault)
            self._contact.addresses = self._known.addresses
            self._ports.warn_of_nowhere(self._known.anchor)
            await self._shards.start(
                *(self.groups, lambda: self._ports.reached(self._known.anchor), self._known.ports),
                self.others.our_http,
            )

    def begin(self) -> None:
        stops = self._parts.stops
        stops.push_async_callback(self._drain)
        self._looking.start()
        stops.callback(self._looking.stop)
        for each in (self._topics, self._every, self._group_configs, self._reloading):
            each.start()
            stops.callback(each.stop)
        Deferred.fromCoroutine(self._settings.check())

    async def _drain(self) -> None:
        await self._draining.drain()

    # ---- running brokers

    def _take(self, found: MetadataResponse) -> None:
        """Take the running brokers from the upstream's answer."""
        before = self._known.ports()
        self._known.update({each.node_id: Endpoint(each.host, each.port) for each in found.brokers})
        if before and before != self._known.ports():
            self._shards.tell()
        self._mirror.update(found.cluster_id or "", self._known.running)

    def _running(self) -> dict[int, Endpoint]:
        """The addresses of the running upstream brokers, by node id."""
        return {node_id: self._known.address(node_id) for node_id in self._known.running}

    def _link_to(self, node_id: int) -> Deferred[Link]:
        return self._contact.connect(self._known.address(node_id), CONNECT_S)

    def _open_port(self, node_id: int, index: int) -> BrokerListeners:
        return self._ports.open(node_id, index, partial(self._relays.new, node_id))

    # ---- requests

    @property
    def answer(self) -> Callable[..., Response | Promise[Response]]:
        return self._front.answer

    # ---- what people see and steer

    def usual(self) -> Usual[Here]:
        from kshim.upstream.faults import usual

        return usual(self._front.answer, self._relays)

    @property
    def is_behind(self) -> bool:
        return self.groups.is_behind

    def leader(self, shard: int) -> int:
        return HERE

    def commands(self, common: Commands, ports: Ports[Here]) -> Commands:
        """See `Backend`. Brokers and records belong to the upstream, so no command stops or moves them."""
        from kshim.control.coordinators import Coordinators
        from kshim.control.members import MemberSteering
        from kshim.control.others import of_everybody
        from kshim.upstream.adoption import Adoption
        from kshim.upstream.elsewhere import with_other_side
        from kshim.upstream.offset_steering import UpstreamOffsetSteering

        coordinators, merged = (Coordinators(each, self.leader) for each in (ports.broker, self._merged))
        offsets = UpstreamOffsetSteering(self._mirror, self.groups, coordinators, self._topics, self.ends)
        return {
            **of_everybody(
                self._group_ends.before(common["groups"]),
                with_other_side(
                    common["why"],
                    self._upstream_groups,
                    passes_consumers=self._parts.config.passes_consumer_groups,
                ),
                *(self.others, self._parts.rounds),
            ),
            "delete-group": MemberSteering(merged).commands()["delete-group"],
            **offsets.commands(),
            **self._draining.commands(),
            **Adoption(
                *(self._upstream_groups, coordinators, self._sides.moving_in),
                lambda: self._running().values(),
                self._elsewhere,
                self._parts.config.upstream_groups_protocols.split(","),
            ).commands(),
        }

    def _elsewhere(self, group_id: str) -> str:
        """Say which kshim coordinates a group if this one does not; else return an empty string."""
        if group_id == self._shards.group_id:
            return "is the group of the kshim processes"
        leader = self.others.leader(group_id)
        return "" if leader is None else f"is coordinated by the kshim at {leader}: adopt it there"

    def http_opened(self, address: Endpoint) -> None:
        """See `Backend.http_opened`: the other kshim ask this one there."""
        self.others.http_opened(address)

    def why_not_ready(self) -> str:
        if self._draining.has_begun:
            return DRAINS
        return "the upstream does not answer" if self._looking.is_silent else self._shards.why_not_ready()

    def figures(self) -> Iterator[Figure]:
        from kshim.upstream.figures import figures

        answers = not self._looking.is_silent
        return figures(self._shards.seen(), self._known.runs(), self._mirrored, answers=answers)

    def activity(self) -> Activity:
        return Activity()

    def described(self, addresses: str) -> str:
        return f"in front of cluster {self._mirror.cluster_id}, at {addresses}"

    def ask(self, ports: Ports[Here]) -> None:
        """See `Backend.ask`: the upstream has the records."""

    def topic_configs(self) -> None:
        """See `Backend.topic_configs`: the upstream has them."""

    def notice(self, group_id: str) -> str:
        return f"It {USED_TWICE}." if self._mirrored is not None and group_id in self._mirrored.in_use else ""

    def look(self) -> Deferred[None]:
        return self._group_ends.look_for_a_while()
