"""A front with stand-ins around it: passages, shards, and an upstream with topics and groups."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from twisted.internet.defer import Deferred, fail, succeed

from kshim.answering.replies import Replies
from kshim.callers import Client
from kshim.callers.once import Once
from kshim.cluster.broker_configs import broker_configs
from kshim.configs.endpoint import Endpoint
from kshim.coordination.group_configs import ValuesOfGroups
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.loading import Leader
from kshim.storage.journal import LogJournal
from kshim.storage.memory import MemoryStore
from kshim.turns import Turn
from kshim.turns.promise import Promise
from kshim.upstream.brokers import Brokers
from kshim.upstream.confirming import Confirming
from kshim.upstream.every_topic import EveryTopic
from kshim.upstream.fellows import Fellow
from kshim.upstream.front import Front
from kshim.upstream.group_configs import UpstreamGroupConfigs
from kshim.upstream.group_topics import GroupTopics
from kshim.upstream.here import HERE, Here
from kshim.upstream.indexes import Indexes
from kshim.upstream.judging import Judging
from kshim.upstream.link import LinkError
from kshim.upstream.member_topics import MemberTopics
from kshim.upstream.mirror import Mirror
from kshim.upstream.own_topic import OwnTopic
from kshim.upstream.shards.mirrored import MirroredOffsets
from kshim.upstream.sides import new_sides
from kshim.upstream.soon_after import SoonAfter
from kshim.upstream.topics import Topics
from kshim.upstream.upstream_groups import UpstreamGroups
from kshim.upstream.versions import BrokerVersions
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.registry import VERSIONS, decode_response, encode_request, encode_response
from tests.api.harness import PENDING, advance, later, new_broker, result
from tests.upstream.kafka_groups import KafkaGroups

ADVERTISED = Endpoint("kshim", 9100)
OURSELVES = Fellow(1000, {"PLAINTEXT": Endpoint("kshim", 9100)}, {1: 0, 2: 1})
OTHER = Fellow(1001, {"PLAINTEXT": Endpoint("other", 9200)}, {1: 1, 2: 0})
SHARDS = 8
NEWEST = VERSIONS[ApiKey.METADATA][-1]
TOPIC_ID, NEW_ID = UUID(int=77), UUID(int=78)


class Passage:
    """Remembers what is forwarded."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_read: list[bool] = []
        self.promise: Promise[Any] = Promise()

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def forward(self, frame: bytes, turn: Turn, *, is_read: bool) -> Promise[Any]:
        self.sent.append(frame)
        self.is_read.append(is_read)
        self.promise = Promise()
        return self.promise

    def ask(self, frame: bytes) -> Promise[Any]:
        return self.judge(frame)

    def judge(self, frame: bytes) -> Promise[Any]:
        """Answer a question about a client's rights; replaced by those who ask some."""
        raise AssertionError(frame)


class Relay:
    def __init__(self) -> None:
        self.is_let_in = True
        self.passage = Passage()
        self.rights: Any = None
        self.client: Any = None


class Port:
    def suspend(self) -> Any: ...
    def resume(self) -> Any: ...


class Shards:
    """Another kshim leads the shards in `elsewhere`; there is none while that is None."""

    group_id, topic = "__kshim", "groups"

    def __init__(self) -> None:
        self.elsewhere: set[int] | None = None
        self.has_left = False
        """True if the other kshim has taken over."""
        self.is_alone = False
        """True if the other kshim is gone."""
        self.open: set[int] = set()
        self.journal = self
        self.read: Deferred[None] = Deferred()

    def has_open_transactions(self, shard: int) -> bool:
        return shard in self.open

    def prove_leadership(self, shard: int) -> Deferred[None]:
        assert shard in self.open
        return self.read

    def leader(self, shard: int) -> Fellow | None:
        if self.elsewhere is None:
            return None
        return OTHER if shard in self.elsewhere else OURSELVES

    def here(self) -> Fellow:
        return OURSELVES

    @property
    def has_met(self) -> bool:
        return self.elsewhere is not None

    def fellows(self) -> list[Fellow]:
        return [] if self.elsewhere is None or self.is_alone else [OURSELVES, OTHER]

    def gone(self) -> list[Fellow]:
        return []

    def successors(self) -> list[Fellow]:
        return [OTHER] if self.has_left else []


class World:
    def __init__(
        self,
        *,
        has_twins: bool = True,
        adopts: bool = False,
        before: World | None = None,
        judges: bool = False,
        **config: Any,
    ) -> None:
        """adopts: whether groups that come here go on with the upstream's offsets. before: a process that has
        led the shards before; it must have given them up. judges: whether the upstream's ACLs decide.
        """
        broker = new_broker(upstream_groups_adopt_enable=adopts, **config)
        self.upstream_topics: dict[str, UUID] = {} if before is None else before.upstream_topics
        self.hidden_topics: set[str] = set()
        """Topics that the upstream does not let kshim see."""
        self.partitions: dict[str, int] = {} if before is None else before.partitions
        """The number of partitions of topics; 1 for those that are not in it."""
        self.is_down = False
        self.asked: list[MetadataRequest] = []
        self.topics = Topics(self.ask_upstream, broker.clock)
        self.every = EveryTopic(
            *(self.link_to_upstream, self.topics, broker.aside, broker.rounds),
            lambda: self.groups.wanted_topics.has_regexes(),
        )
        seen = GroupTopics(self.topics, self.every, Shards.topic)
        self.configs = UpstreamGroupConfigs(
            *(self.describe_configs, broker.clock, broker_configs(broker.config, 0)),
            lambda: self.groups.wanted_topics.group_ids(),
            broker.once,
        )
        coordinator = new_coordinator(
            *(broker.config, SHARDS, None, self.topics.id_of, seen), ValuesOfGroups(self.configs.values, 0)
        )
        self.journal = LogJournal(MemoryStore().log, range(SHARDS)) if before is None else before.journal
        self.groups = GroupRuntime(coordinator, self.journal, broker.clock)
        confirming = Confirming(self.topics)
        self.group_configs: dict[str, dict[str, str]] = {} if before is None else before.group_configs
        """The configs of groups that are set at the upstream."""
        self.configs_asked: list[str] = []
        self.configs_error = ErrorCode.NONE
        self.member_topics = MemberTopics(self.groups, self.topics, self.every, confirming, self.configs)
        self.configs.changed = self.groups.group_configs_changed
        self.groups.shards.prepare = self.member_topics.before_serving
        if before is None:
            self.lead()
        self.topics.on_change(self.groups.topic_changed)
        self.topics.on_deletion(self.groups.forget_topics)
        self.topics.wanted = self.groups.wanted_topics.names
        self.topics.is_wanted = self.groups.wanted_topics.is_wanted
        mirror = Mirror(self.topics)
        self.here = Here(
            config=broker.config,
            cluster=mirror,
            groups=self.groups,
            transactions=None,
            clock=broker.clock,
            rounds=broker.rounds,
            quotas=broker.quotas,
            aside=broker.aside,
            unread=broker.unread,
            once=broker.once,
            arrivals=broker.arrivals,
            replies=Replies(mirror),
            wall_clock=broker.wall_clock,
        )
        self.brokers = Brokers(Indexes(None), lambda node_id, index: Port())
        self.brokers.update({1: Endpoint("10.0.0.1", 9092), 2: Endpoint("10.0.0.2", 9092)})
        self.shards = Shards()
        self.kafka = KafkaGroups(brokers=2)
        theirs = UpstreamGroups(self.here.clock, self.kafka)
        self.mirrored = MirroredOffsets(self.here.clock, theirs, Once(self.here.clock)) if has_twins else None
        self.sides = new_sides(
            *(broker.config, self.here.clock, self.groups, theirs, self.topics, self.member_topics),
            *(self.mirrored, Once(self.here.clock), broker.aside),
        )
        self.moving_in = self.sides.moving_in
        here = replace(self.here, groups=self.sides.merged)
        self.linked: list[int] = []
        self.link: Deferred[Any] = Deferred()
        self.versions = BrokerVersions(self.here.clock, self._connect)
        self.own = OwnTopic(self.shards.topic)
        self.relay = Relay()
        self.client = Client("/127.0.0.1", Endpoint("127.0.0.1", 51000), ADVERTISED)
        self.relay.client = self.client
        relays: Any = SimpleNamespace(by_client={self.client: self.relay})
        has_regexes = self.groups.wanted_topics.has_regexes
        judging = Judging(here, self.versions, self.every, has_regexes, relays) if judges else None
        self.front = Front(
            here,
            self.brokers,
            confirming,
            self.shards,
            theirs,
            self.own,
            relays,
            self.versions,
            self.changes(),
            self.sides,
            judging,
        )

    def changes(self) -> dict[ApiKey, Any]:
        """The actions that follow requests of these APIs."""
        topics = SoonAfter(self.here.clock, self.member_topics.look)
        configs = SoonAfter(self.here.clock, self.configs.look)
        return {
            ApiKey.CREATE_TOPICS: topics.note,
            ApiKey.CREATE_PARTITIONS: topics.note,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.note,
        }

    def lead(self) -> None:
        """Begin to lead all shards."""
        self.groups.start({shard: Leader(HERE) for shard in range(SHARDS)})

    def _connect(self, node_id: int) -> Deferred[Any]:
        self.linked.append(node_id)
        return self.link

    @property
    def passage(self) -> Passage:
        return self.relay.passage

    def ask_upstream(self, request: MetadataRequest) -> Deferred[MetadataResponse]:
        if self.is_down:
            return fail(LinkError("down"))
        self.asked.append(request)
        known = [
            MetadataResponseTopic(name=name, topic_id=it, partitions=self._partitions(name))
            for name, it in self.upstream_topics.items()
            if name not in self.hidden_topics
            if request.topics is None
            or any(asked.name == name or asked.topic_id == it for asked in request.topics)
        ]
        names = {asked.name for asked in request.topics or () if asked.name}
        absent = [
            MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for name in sorted(names - self.upstream_topics.keys() - self.hidden_topics)
        ]
        hidden = [
            MetadataResponseTopic(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for name in sorted(names & self.hidden_topics)
        ]
        return succeed(MetadataResponse(topics=(*known, *absent, *hidden)))

    def _partitions(self, name: str) -> tuple[MetadataResponsePartition, ...]:
        return tuple(
            MetadataResponsePartition(partition_index=index) for index in range(self.partitions.get(name, 1))
        )

    def describe_configs(self, request: DescribeConfigsRequest) -> Deferred[DescribeConfigsResponse]:
        if self.is_down:
            return fail(LinkError("down"))
        results = []
        for asked in request.resources:
            self.configs_asked.append(asked.resource_name)
            given = {"consumer.session.timeout.ms": ("45000", 5)} | {
                name: (text, 8) for name, text in self.group_configs.get(asked.resource_name, {}).items()
            }
            configs = tuple(
                DescribeConfigsResourceResult(name=name, value=text, config_source=source)
                for name, (text, source) in given.items()
            )
            results.append(
                DescribeConfigsResult(
                    error_code=self.configs_error,
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    configs=() if self.configs_error else configs,
                )
            )
        return succeed(DescribeConfigsResponse(results=tuple(results)))

    async def link_to_upstream(self) -> Any:
        """A link on which all topics can be asked for."""

        async def ask(request: MetadataRequest, *, is_read: bool) -> bytes:
            assert not is_read
            return encode_response(ApiKey.METADATA, NEWEST, 1, await self.ask_upstream(request))

        return SimpleNamespace(address=ADVERTISED, version=lambda _: NEWEST, ask=ask)

    def send(self, key: ApiKey, version: int, request: Any, at: int = 1, *, is_decoded: bool = False) -> Any:
        """The result of `answer`; `at` is the broker whose port the request arrives at."""
        header = RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id="c")
        broker = replace(self.here, node_id=at)
        decoded = (header, request) if is_decoded else None
        return self.front.answer(broker, encode_request(header, request), self.client, Turn(), decoded)

    def ask(self, key: ApiKey, version: int, request: Any, at: int = 1) -> Any:
        """The response that kshim gives by itself."""
        answer = later(self.send(key, version, request, at))
        advance(self.here)  # what was committed in this turn becomes durable
        reply = result(answer)
        assert reply is not PENDING
        assert not self.passage.sent
        return decode_response(key, version, bytes(reply))[1]

    def forwarded(self, key: ApiKey, version: int, request: Any, response: Any) -> Any:
        """The response that a client gets of one that the upstream gives."""
        reply = result_of(self.send(key, version, request), self.passage)
        assert reply is PENDING
        reply = later(self.send(key, version, request))
        self.passage.promise.answer_alone(encode_response(key, version, 7, response))
        return decode_response(key, version, bytes(result(reply)))[1]

    def group_at(self, node_id: int) -> str:
        """A group whose coordinator is found at that broker's port."""
        names = (f"g{n}" for n in range(1000))
        return next(name for name in names if self.brokers.home(self.groups.shard_for(name)) == node_id)


def result_of(answer: Any, passage: Passage) -> Any:
    assert passage.sent
    return result(answer)


def commit(world: World, version: int, group_id: str = "g", topic_id: UUID = TOPIC_ID) -> int:
    """The error of a commit for the first partition of "t"."""
    partition = OffsetCommitRequestPartition(committed_offset=5)
    topic = OffsetCommitRequestTopic(name="t", topic_id=topic_id, partitions=(partition,))
    request = OffsetCommitRequest(group_id=group_id, topics=(topic,))
    (answered,) = world.ask(ApiKey.OFFSET_COMMIT, version, request).topics
    return int(answered.partitions[0].error_code)


def join(world: World, group_id: str) -> None:
    """Give the group a member whose coordinator is kshim."""
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    result(world.send(ApiKey.JOIN_GROUP, 3, request))
    advance(world.here)
    seen = world.groups.see(group_id)
    assert seen is not None
    assert len(seen.members) == 1
