"""The backend in front of an upstream: records are the upstream's, and kshim coordinates the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from kshim.configs.upstream import WrongUpstreamProperty, upstream_security
from kshim.coordination.group_configs import ValuesOfGroups
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.network.listeners import BrokerListeners, CannotListen
from kshim.quotas.quotas import Quotas
from kshim.server import StartError
from kshim.storage.interfaces import Activity
from kshim.turns import Turn
from kshim.turns.slices import Slices
from kshim.upstream.brokers import Brokers
from kshim.upstream.confirming import Confirming
from kshim.upstream.connector import Connector
from kshim.upstream.contact import CONNECT_S, Contact
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.ends import Ends
from kshim.upstream.every_topic import EveryTopic
from kshim.upstream.front import Front
from kshim.upstream.group_configs import UpstreamGroupConfigs
from kshim.upstream.group_ends import GroupEnds
from kshim.upstream.group_topics import GroupTopics
from kshim.upstream.here import HERE, Here
from kshim.upstream.indexes import Indexes, WrongUpstream
from kshim.upstream.interfaces import GroupShards, Upstream
from kshim.upstream.link import Link, LinkError
from kshim.upstream.looking import Looking
from kshim.upstream.member_topics import MemberTopics
from kshim.upstream.merged_groups import MergedGroups
from kshim.upstream.mirror import Mirror
from kshim.upstream.own_topic import OwnTopic
from kshim.upstream.passage import Passage
from kshim.upstream.ports import UpstreamPorts
from kshim.upstream.relay import Relay, Relays
from kshim.upstream.session import LoginFailed
from kshim.upstream.settings import UpstreamSettings
from kshim.upstream.shards.mirrored import USED_TWICE, MirroredOffsets
from kshim.upstream.shards.renewal import Renewal
from kshim.upstream.shards.sharing import SharedShards
from kshim.upstream.soon_after import SoonAfter
from kshim.upstream.topics import Topics
from kshim.upstream.transactions import UpstreamTransactions
from kshim.upstream.upstream_groups import UpstreamGroups
from kshim.upstream.versions import BrokerVersions
from schemas.api_key import ApiKey
from schemas.messages.metadata import MetadataResponse

if TYPE_CHECKING:
    from kshim.control.commands import Commands
    from kshim.faults.answers import Usual
    from kshim.network.shared import Response
    from kshim.server.parts import Parts
    from kshim.server.ports import Ports
    from kshim.turns.promise import Promise

OLDEST_METADATA = 10
"""The first version of Metadata that has topic ids: Kafka 2.8."""
MOST_RESPONSE_BYTES = 2**31 - 1

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
    _ports: UpstreamPorts

    def __init__(self, parts: Parts, new_shards: NewShards = SharedShards) -> None:
        """new_shards: makes the object that keeps the groups."""
        config, reactor = parts.config, parts.reactor
        self._parts = parts
        self._connector = Connector(reactor, upstream_security(config.given))
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
        self._own = OwnTopic(self._shards.topic)
        self._relays = Relays(self._new_passage, self._own.is_first)
        indexes = Indexes(None if config.in_memory else Path(config.log_dirs))
        self._known = Brokers(indexes, self._open_port, lambda: bool(self._shards.fellows()))
        self._settings = UpstreamSettings(self._coordinators, self._running, parts.once)
        self._looking = Looking(reactor, self._contact, self._own, self._take, parts.once)
        self.ends = Ends(reactor, self._contact, self._topics.by_name, self._known.address)

    # ---- start

    async def open(self) -> None:
        config, stops = self._parts.config, self._parts.stops
        with _start_errors():
            if not config.in_memory:
                Path(config.log_dirs).mkdir(parents=True, exist_ok=True)
            for stop in (self._connector.stop, self._contact.stop, self._coordinators.close, self.ends.stop):
                stops.callback(stop)
            await self._connector.prepare()
            await self._first_look()
            stops.push_async_callback(self._shards.stop)
            if self._mirrored is not None:
                stops.push_async_callback(self._mirrored.stop)
            await self._shards.prepare()

    async def _first_look(self) -> None:
        """Connect to the upstream, and check that it is new enough. Raises LinkError, StartError."""
        link = await self._contact.first(self._parts.config.upstream_start_timeout_ms / 1000)
        if link.version(ApiKey.METADATA) < OLDEST_METADATA:
            raise StartError(
                f"upstream broker {link.address} is older than Kafka 2.8: it has no topic ids (Metadata v10)"
            )

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
        has_twins = self._mirrored is not None
        merged = MergedGroups(
            *(groups, self._upstream_groups, self._topics, self._member_topics, parts.once),
            has_twins=has_twins,
        )
        self._merged = replace(here, groups=merged)
        self._front = Front(
            self._merged,
            self._known,
            self._confirming,
            self._shards,
            self._upstream_groups,
            self._own,
            self._relays,
            BrokerVersions(parts.reactor, self._link_to),
            self._changes(),
        )
        self._group_ends = GroupEnds(here, self._topics, self.ends)
        return here

    def _changes(self) -> dict[ApiKey, Callable[[], object]]:
        """The actions that follow requests of these APIs: look soon at what they change."""
        topics = SoonAfter(self._parts.reactor, self._member_topics.look)
        configs = SoonAfter(self._parts.reactor, self._group_configs.look)
        for each in (topics, configs):
            self._parts.stops.callback(each.stop)
        return {
            ApiKey.CREATE_TOPICS: topics.note,
            ApiKey.DELETE_TOPICS: topics.note,
            ApiKey.CREATE_PARTITIONS: topics.note,
            ApiKey.ALTER_CONFIGS: configs.note,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.note,
        }

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
            ValuesOfGroups(self._group_configs.values),
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
        self._ports = UpstreamPorts(ports)
        with _start_errors():
            found = await self._looking.ask()
            self._known.open(found.cluster_id or "")
            self._take(found)
            for fault in self._known.faults.values():
                raise CannotListen(fault)
            self._contact.addresses = self._known.addresses
            await self._shards.start(self.groups, lambda: self._ports.reached(self._known.anchor))

    def begin(self) -> None:
        stops = self._parts.stops
        self._looking.start()
        stops.callback(self._looking.stop)
        for each in (self._topics, self._every, self._group_configs):
            each.start()
            stops.callback(each.stop)
        Deferred.fromCoroutine(self._settings.check())

    # ---- running brokers

    def _take(self, found: MetadataResponse) -> None:
        """Take the running brokers from the upstream's answer."""
        self._known.update({each.node_id: Endpoint(each.host, each.port) for each in found.brokers})
        self._mirror.update(found.cluster_id or "", self._known.running)

    def _running(self) -> dict[int, Endpoint]:
        """The addresses of the running upstream brokers, by node id."""
        return {node_id: self._known.address(node_id) for node_id in self._known.running}

    def _link_to(self, node_id: int) -> Deferred[Link]:
        return self._contact.connect(self._known.address(node_id), CONNECT_S)

    def _open_port(self, node_id: int, index: int) -> BrokerListeners:
        return self._ports.open(node_id, index, partial(self._relays.new, node_id))

    def _new_passage(self, node_id: int, relay: Relay) -> Passage:
        address = self._known.address(node_id)
        passage = Passage(relay, str(address), MOST_RESPONSE_BYTES, self._parts.reactor)
        self._connector.connect(passage, address, CONNECT_S)
        return passage

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
        from kshim.upstream.adoption import Adoption
        from kshim.upstream.elsewhere import with_other_side
        from kshim.upstream.offset_steering import UpstreamOffsetSteering

        coordinators, merged = (Coordinators(each, self.leader) for each in (ports.broker, self._merged))
        offsets = UpstreamOffsetSteering(self._mirror, self.groups, coordinators, self._topics, self.ends)
        return {
            "groups": self._group_ends.before(common["groups"]),
            "why": with_other_side(common["why"], self._upstream_groups),
            "delete-group": MemberSteering(merged).commands()["delete-group"],
            **offsets.commands(),
            **Adoption(self._upstream_groups, coordinators).commands(),
        }

    def why_not_ready(self) -> str:
        return "the upstream does not answer" if self._looking.is_silent else ""

    def activity(self) -> Activity:
        return Activity()

    def described(self, addresses: str) -> str:
        return f"in front of cluster {self._mirror.cluster_id}, at {addresses}"

    def notice(self, group_id: str) -> str:
        return f"It {USED_TWICE}." if self._mirrored is not None and group_id in self._mirrored.in_use else ""

    def look(self) -> Deferred[None]:
        return self._group_ends.look_for_a_while()


@contextmanager
def _start_errors() -> Iterator[None]:
    """Turn the errors that a user can mend into StartError."""
    try:
        yield
    except (LinkError, LoginFailed, WrongUpstream, WrongUpstreamProperty, OSError) as error:
        raise StartError(str(error)) from error
