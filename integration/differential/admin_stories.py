"""What administrators ask, good and bad; each story once for every version of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from integration.differential.admin import NO_ID, Admin, Rehearsal
from schemas import alter_configs as legacy
from schemas import incremental_alter_configs as incremental
from schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.api_key import ApiKey
from schemas.create_acls import AclCreation, CreateAclsRequest
from schemas.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from schemas.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.describe_acls import DescribeAclsRequest
from schemas.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from schemas.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from schemas.list_config_resources import ListConfigResourcesRequest
from schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from schemas.metadata import MetadataRequest, MetadataRequestTopic
from schemas.registry import VERSIONS

NEVER_AN_ID = UUID(int=4711)
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
TEXT, ELR, NOT_SERVED, OPERATION = "D-error-text", "D-elr", "D-config-resources", "D-unknown-operation"
UNANSWERED = "D-one-resource-twice"
LISTENERS, NO_THREADS = "D-listener-configs", "D-no-threads"

# What a broker was started with, and what only one of the two has.
PER_SERVER = (
    "advertised.listeners broker.heartbeat.interval.ms broker.id broker.session.timeout.ms brokers "
    "control.path "
    "controller.listener.names controller.quorum.voters flush.policy group.initial.rebalance.delay.ms "
    "listener.security.protocol.map listeners log.dirs min.insync.replicas "
    "offsets.topic.replication.factor process.roles producer.id.expiration.check.interval.ms "
    "share.coordinator.state.topic.min.isr share.coordinator.state.topic.replication.factor "
    "transaction.state.log.min.isr transaction.state.log.replication.factor"
).split()
# Kafka can change its listeners' security while it runs.
READ_ONLY_HERE = (
    "principal.builder.class sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd "
    "sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name "
    "sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor "
    "sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds "
    "sasl.login.refresh.window.factor sasl.login.refresh.window.jitter "
    "sasl.mechanism.inter.broker.protocol ssl.cipher.suites ssl.client.auth "
    "ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password "
    "ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location "
    "ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation "
    "ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password "
    "ssl.truststore.type"
).split()
ELR_CONFIG = ("min.insync.replicas",)
"""Apache Kafka sets it for all brokers when it is formatted (KIP-966)."""


@dataclass(frozen=True)
class Story:
    """api_key: of the API whose versions it is told in."""

    api_key: ApiKey
    tell: Callable[[Admin], None]

    @property
    def name(self) -> str:
        return self.tell.__name__


STORIES: list[Story] = []


def _story(api_key: ApiKey) -> Callable[[Callable[[Admin], None]], Callable[[Admin], None]]:
    def add(tell: Callable[[Admin], None]) -> Callable[[Admin], None]:
        STORIES.append(Story(api_key, tell))
        return tell

    return add


def meant_in_stories() -> set[str]:
    """The keys of the differences that some story meets: each is told to nobody."""
    met: set[str] = set()
    for story in STORIES:
        for version in VERSIONS[story.api_key]:
            admin = Rehearsal(("", 0), story.name, version)
            story.tell(admin)
            met |= {told.meant for told in admin.told}
    return met - {""}


# -- requests


Operation = tuple[str, int, str | None]


def alter(
    *resources: tuple[int, str, Sequence[Operation]], validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    incremental.AlterableConfig(name=config, config_operation=operation, value=value)
                    for config, operation, value in operations
                ),
            )
            for kind, name, operations in resources
        ),
        validate_only=validate_only,
    )


def put(
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]], validate_only: bool = False
) -> legacy.AlterConfigsRequest:
    return legacy.AlterConfigsRequest(
        resources=tuple(
            legacy.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(legacy.AlterableConfig(name=config, value=value) for config, value in configs),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


def describe(
    *resources: tuple[int, str, Sequence[str] | None], synonyms: bool = True, documentation: bool = True
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if keys is None else tuple(keys),
            )
            for kind, name, keys in resources
        ),
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def new(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(ids))
            for index, ids in assignments
        ),
        configs=tuple(
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ),
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)


def made(admin: Admin, *topics: CreatableTopic) -> None:
    """Topics that are there; Apache Kafka answers CreateTopics before its broker knows of them."""
    admin.change(create(*topics), version=4)
    names = [topic.name for topic in topics]
    admin.look(partitions(*names), version=0)


def partitions(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def elect(
    election_type: int, *wanted: tuple[str, Sequence[int]], all_partitions: bool = False
) -> ElectLeadersRequest:
    topics = tuple(TopicPartitions(topic=name, partitions=tuple(which)) for name, which in wanted)
    return ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=None if all_partitions else topics,
        timeout_ms=10_000,
    )


# -- configs


@_story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def configs_of_a_topic(admin: Admin) -> None:
    t = admin.topic("t")
    made(admin, new(t))
    steps: Sequence[Sequence[Operation]] = [
        [("retention.ms", SET, "1000"), ("preallocate", SET, "TRUE")],
        [("cleanup.policy", APPEND, "compact")],
        [("cleanup.policy", APPEND, "compact,delete")],
        [("cleanup.policy", SUBTRACT, "delete")],
        [("cleanup.policy", SUBTRACT, "compact")],
        [("cleanup.policy", SET, " compact , delete ")],
        [("min.cleanable.dirty.ratio", SET, "1e-4"), ("retention.ms", SET, " +5 ")],
        [("retention.ms", DELETE, None), ("flush.ms", DELETE, "1"), ("no.such", DELETE, None)],
        [("leader.replication.throttled.replicas", SET, "0:1,1:1")],
        [("leader.replication.throttled.replicas", APPEND, "2:1")],
        [],
    ]
    for operations in steps:
        admin.change(alter((TOPIC, t, operations), validate_only=True))
        admin.change(alter((TOPIC, t, operations)))
        admin.look(describe((TOPIC, t, None)), version=4, but_for=ELR_CONFIG)


@_story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def bad_configs_of_topics(admin: Admin) -> None:
    t = admin.topic("t")
    made(admin, new(t))
    values: Sequence[tuple[str, str]] = [
        ("no.such", "1"),
        ("message.format.version", "3.0"),
        ("retention.ms", "abc"),
        ("retention.ms", "-5"),
        ("retention.ms", "1.0"),
        ("retention.ms", ""),
        ("retention.ms", "99999999999999999999"),
        ("segment.bytes", "5"),
        ("segment.bytes", "2147483648"),
        ("segment.ms", "0"),
        ("cleanup.policy", "compact,x"),
        ("cleanup.policy", ","),
        ("compression.type", "GZIP"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("preallocate", "yes"),
        ("min.cleanable.dirty.ratio", "2"),
        ("min.cleanable.dirty.ratio", "x"),
        ("min.insync.replicas", "0"),
        ("leader.replication.throttled.replicas", "x"),
        ("remote.storage.enable", "true"),
        ("max.compaction.lag.ms", "0"),
    ]
    for name, value in values:
        admin.change(alter((TOPIC, t, [(name, SET, value)])))
    admin.change(
        alter((TOPIC, t, [("min.compaction.lag.ms", SET, "5"), ("max.compaction.lag.ms", SET, "4")]))
    )
    for operation in (APPEND, SUBTRACT):
        admin.change(alter((TOPIC, t, [("retention.ms", operation, "1")])))
        admin.change(alter((TOPIC, t, [("no.such", operation, "1")])))
    for operation in (7, -1):
        admin.change(alter((TOPIC, t, [("retention.ms", operation, "1")])), meant=OPERATION)
    admin.change(alter((TOPIC, t, [("retention.ms", SET, None), ("flush.ms", SET, None)])))
    admin.change(alter((TOPIC, t, [("retention.ms", SET, "5"), ("retention.ms", SET, "6")])))
    admin.change(alter((TOPIC, t, [("retention.ms", SET, "5"), ("segment.ms", SET, "0")])))
    admin.look(describe((TOPIC, t, None)), version=4, but_for=ELR_CONFIG)


@_story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def configs_that_java_reads(admin: Admin) -> None:
    t, replicas = admin.topic("t"), "leader.replication.throttled.replicas"
    made(admin, new(t))
    integers = ["+5", "\t٥\n", "５", "\x007", "\xa07", "\U0001d7d3", "0" * 40 + "5", "+", "5L", "1_0", " x "]
    doubles = [
        "NaN",
        "+NaN",
        "nan",
        "Infinity",
        "-1e400",
        "1f",
        "0.1e1D",
        "0x1.p-1",
        "0X.8P0f",
        "0x1",
        "0x.p1",
    ]
    doubles += ["4.9e-324", "-0", "1.", ".", "٠.٥", "0.5L", "NaNf", "9e-4", f"0x1p-{'9' * 40}", " 7 "]
    lists = ["delete,delete", "compact , delete ,compact", "delete,", ",", "\x00", "compact\xa0", "a\x01,b"]
    throttled = ["0:1,0:1", "0:1,,1:1", "*,", ",", "*,*", "٠:1", "0:1\xa0"]
    values = {
        "flush.messages": integers,
        "segment.index.bytes": ["٧", "2147483648"],
        "internal.segment.bytes": ["5", "-1", " 7 ", "x", "2147483648"],
        "min.cleanable.dirty.ratio": doubles,
        "preallocate": ["falſe", "TRUE\x00", "true\xa0", " yes ", "1"],
        "message.timestamp.type": ["\x00CreateTime", "CreateTime\xa0"],
        "cleanup.policy": lists,
        replicas: throttled,
    }
    for name, texts in values.items():
        for text in texts:
            admin.change(alter((TOPIC, t, [(name, SET, text)])))
            admin.look(describe((TOPIC, t, (name,))), version=4)
    repeated = "delete,delete,compact"
    edits: Sequence[tuple[str, str, int, str]] = [
        ("cleanup.policy", repeated, SUBTRACT, "delete"),
        ("cleanup.policy", repeated, SUBTRACT, "delete,delete"),
        ("cleanup.policy", repeated, APPEND, "compact,compact"),
        ("cleanup.policy", "delete", APPEND, "compact,,"),
        ("cleanup.policy", "delete", APPEND, ",compact"),
        ("cleanup.policy", "delete", APPEND, ","),
        (replicas, "0:1,0:1,0:1", SUBTRACT, "0:1"),
        (replicas, "0:1,0:1", APPEND, "0:1,1:1,1:1"),
    ]
    for name, text, operation, edit in edits:
        admin.change(alter((TOPIC, t, [(name, SET, text)])))
        admin.change(alter((TOPIC, t, [(name, operation, edit)])))
        admin.look(describe((TOPIC, t, (name,))), version=4)
    admin.change(alter((TOPIC, t, [("internal.segment.bytes", DELETE, None)])))
    admin.look(describe((TOPIC, t, None)), version=4, but_for=ELR_CONFIG)


@_story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def bad_resources(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t))
    five = [("retention.ms", SET, "5")]
    for name in (nope, "", "a b", ".", "x" * 250):
        admin.change(alter((TOPIC, name, five)))
    admin.change(alter((TOPIC, nope, [("retention.ms", SET, "-5")])))
    admin.change(alter((TOPIC, nope, [])))
    admin.change(alter((TOPIC, t, five), (TOPIC, t, []), (TOPIC, nope, five)))
    admin.change(alter((TOPIC, t, [("x", SET, "1")]), (BROKER, "7", [])))
    for kind in (0, 3, 99):
        admin.change(alter((kind, t, [])))
    for name in ("2", "-1", "x", "1 ", "1.0", "\U0001d7cf", "1" * 11):
        admin.change(alter((BROKER, name, [("log.retention.ms", SET, "5")])))
    admin.change(alter())


@_story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def configs_of_brokers(admin: Admin) -> None:
    """All of it is taken back at the end."""
    t = admin.topic("t")
    made(admin, new(t))
    steps: Sequence[tuple[str, Sequence[Operation]]] = [
        ("", [("log.segment.delete.delay.ms", SET, "7")]),
        ("1", [("log.segment.delete.delay.ms", SET, "9"), ("log.cleanup.policy", APPEND, "compact")]),
        ("1", [("log.cleanup.policy", SUBTRACT, "delete")]),
        ("", [("leader.replication.throttled.rate", SET, "5"), ("my.own", SET, "6")]),
        ("1", [("log.cleanup.policy", SET, "delete,delete,compact")]),
        ("1", [("log.cleanup.policy", SUBTRACT, "delete,compact")]),
        ("1", [("log.cleaner.min.cleanable.ratio", SET, "0x1p-2f")]),
        ("1", [("log.cleaner.min.cleanable.ratio", DELETE, None)]),
        ("1", [("log.cleanup.policy", DELETE, None), ("log.segment.delete.delay.ms", DELETE, None)]),
        ("", [("leader.replication.throttled.rate", DELETE, "5"), ("my.own", DELETE, None)]),
        ("", [("log.segment.delete.delay.ms", DELETE, None)]),
    ]
    for name, operations in steps:
        admin.change(alter((BROKER, name, operations), validate_only=True))
        admin.change(alter((BROKER, name, operations)))
        keys = (
            "log.segment.delete.delay.ms",
            "log.cleanup.policy",
            "log.cleaner.min.cleanable.ratio",
            "my.own",
            "leader.replication.throttled.rate",
        )
        admin.look(describe((BROKER, "", None), (BROKER, "1", keys)), version=4, but_for=ELR_CONFIG)
        admin.look(describe((TOPIC, t, ("file.delete.delay.ms", "cleanup.policy"))), version=4)


@_story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def bad_configs_of_brokers(admin: Admin) -> None:
    values: Sequence[tuple[str, str, str]] = [
        ("num.partitions", "7", ""),
        ("log.retention.minutes", "7", ""),
        ("log.cleaner.enable", "false", ""),
        ("node.id", "7", ""),
        ("log.retention.ms", "abc", ""),
        ("log.retention.ms", "0", TEXT),
        ("log.roll.ms", "0", TEXT),
        ("log.cleanup.policy", "x", ""),
        ("message.max.bytes", "-1", ""),
        ("compression.type", "x", ""),
        ("log.segment.bytes", "1", ""),
        ("log.message.timestamp.type", "x", ""),
        ("unclean.leader.election.enable", "maybe", ""),
        ("log.cleaner.min.cleanable.ratio", "5", ""),
        ("producer.id.expiration.ms", "0", ""),
        ("leader.replication.throttled.rate", "-5", ""),
        ("log.cleaner.dedupe.buffer.size", "1", TEXT),
        ("max.connections", "0", TEXT),
        ("num.io.threads", "100", NO_THREADS),
        ("background.threads", "1", NO_THREADS),
    ]
    for name in ("1", ""):
        for config, value, meant in values:
            admin.change(alter((BROKER, name, [(config, SET, value)]), validate_only=True), meant=meant)
        for config in ("listener.name.plaintext.max.connections",):
            admin.change(alter((BROKER, name, [(config, SET, "5")]), validate_only=True), meant=LISTENERS)
        admin.change(alter((BROKER, name, [("log.cleaner.threads", APPEND, "1")]), validate_only=True))
        admin.change(alter((BROKER, name, [("log.retention.ms", SET, None)]), validate_only=True))
        admin.change(alter((BROKER, name, [("log.retention.ms", 9, "5")]), validate_only=True))
        admin.change(alter((BROKER, name, [("no.such", APPEND, "5")]), validate_only=True), meant=OPERATION)
    admin.change(alter((BROKER, "1", [("ssl.keystore.location", SET, "x")]), validate_only=True), meant=TEXT)
    admin.change(alter((BROKER, "", [("listeners", SET, "x")]), validate_only=True), meant=TEXT)


@_story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def loggers(admin: Admin) -> None:
    """The root logger is the only one that both have."""
    steps: Sequence[tuple[str, str, int, str | None]] = [
        ("1", "root", SET, "WARN"),
        ("1", "no.such", SET, "WARN"),
        ("1", "no.such", DELETE, None),
        ("1", "root", SET, "LOUD"),
        ("1", "root", SET, None),
        ("1", "root", DELETE, None),
        ("1", "root", APPEND, "INFO"),
        ("1", "root", SUBTRACT, "INFO"),
        ("x", "root", SET, "INFO"),
        ("", "root", SET, "INFO"),
        ("2", "root", SET, "INFO"),
    ]
    for broker, logger, operation, level in steps:
        admin.change(alter((LOGGER, broker, [(logger, operation, level)]), validate_only=True))
    admin.change(alter((LOGGER, "1", [("root", 7, "INFO")]), validate_only=True), meant=OPERATION)
    admin.change(alter((LOGGER, "1", [("root", SET, "INFO")])))
    admin.look(describe((LOGGER, "1", ("root", "no.such"))), version=4)


@_story(ApiKey.ALTER_CONFIGS)
def configs_put(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t, segment_ms="5", cleanup_policy="compact"))
    for configs in ([("retention.ms", "77")], [("retention.ms", "78"), ("flush.ms", "5")], []):
        admin.change(put((TOPIC, t, configs), validate_only=True))
        admin.change(put((TOPIC, t, configs)))
        admin.look(describe((TOPIC, t, None)), version=4, but_for=ELR_CONFIG)
    bad: Sequence[tuple[int, str, Sequence[tuple[str, str | None]]]] = [
        (TOPIC, t, [("x", "1")]),
        (TOPIC, t, [("retention.ms", None)]),
        (TOPIC, t, [("retention.ms", "1"), ("retention.ms", "2")]),
        (TOPIC, nope, []),
        (TOPIC, "", []),
        (BROKER, "1", [("log.dirs", "x")]),
        (BROKER, "2", []),
        (BROKER, "x", []),
        (BROKER, "1", [("message.max.bytes", "x")]),
        (LOGGER, "1", []),
        (0, "1", []),
    ]
    for resource in bad:
        admin.change(put(resource))
    admin.change(put((TOPIC, t, []), (TOPIC, t, [])), meant=UNANSWERED, timeout_s=2)
    admin.change(put((BROKER, "", []), validate_only=True), meant=ELR)


@_story(ApiKey.DESCRIBE_CONFIGS)
def described(admin: Admin) -> None:
    t = admin.topic("t")
    made(admin, new(t, cleanup_policy="compact", segment_ms="1000", max_message_bytes="5000"))
    for synonyms in (True, False):
        for documentation in (True, False):
            flags = {"synonyms": synonyms, "documentation": documentation}
            admin.look(describe((TOPIC, t, None), **flags), but_for=ELR_CONFIG)
            admin.look(describe((BROKER, "1", None), **flags), but_for=[*PER_SERVER, *READ_ONLY_HERE])
    admin.look(describe((TOPIC, t, ())), but_for=ELR_CONFIG)
    admin.look(describe((TOPIC, t, ("retention.ms", "nix", "retention.ms"))))
    admin.look(
        describe((TOPIC, t, ("flush.ms",)), (TOPIC, t, ("segment.ms",)), (BROKER, "", None)),
        but_for=ELR_CONFIG,
    )
    for kind, name in ((TOPIC, "nope"), (TOPIC, ""), (TOPIC, "a b"), (BROKER, "7"), (BROKER, "x")):
        admin.look(describe((kind, name, None)))
    for kind in (0, 3, -1, 99):
        admin.look(describe((kind, "x", None)))
        admin.look(describe((TOPIC, t, None), (kind, "x", None), (BROKER, "7", None), (GROUP, "g", None)))
    for name in ("", "2", "x"):
        admin.look(describe((LOGGER, name, None)))
    for name in ("0" * 600 + "1", "+1", "\u0661"):
        admin.look(describe((BROKER, name, ("message.max.bytes",))))
    admin.change(alter((LOGGER, "1", [("root", SET, "INFO")])))
    for documentation in (True, False):
        admin.look(describe((LOGGER, "1", ("root",)), documentation=documentation))
    for kind, name in ((CLIENT_METRICS, "m"), (GROUP, "g")):
        admin.look(describe((kind, name, None)), meant=NOT_SERVED)


@_story(ApiKey.LIST_CONFIG_RESOURCES)
def config_resources(admin: Admin) -> None:
    made(admin, new(admin.topic("b")), new(admin.topic("a")))
    for types in ((), (2,), (4,), (8,), (4, 2), (2, 2), (16,), (32,), (3,), (2, 99)):
        admin.look(ListConfigResourcesRequest(resource_types=types))


# -- topics


@_story(ApiKey.CREATE_TOPICS)
def topics_created(admin: Admin) -> None:
    name = admin.topic
    good = [
        new(name("plain"), 3),
        new(name("default"), -1, -1),
        new(name("assigned"), -1, -1, [(1, [1]), (0, [1])]),
        new(
            name("configured"), 1, 1, cleanup_policy="compact,delete", retention_ms=" 5 ", preallocate="TRUE"
        ),
    ]
    for topic in good:
        admin.change(create(topic, validate_only=True), meant=ELR if admin.version >= 5 else "")
    admin.change(create(*good), meant=ELR if admin.version >= 5 else "")
    admin.change(create(good[0], validate_only=True))
    admin.change(create(good[0], good[1]))
    bad = [
        new(""),
        new("."),
        new(".."),
        new("a b"),
        new("x" * 250),
        new("__cluster_metadata"),
        new(name("b"), 0),
        new(name("b"), -2),
        new(name("b"), 10_001),
        new(name("b"), 1, 0),
        new(name("b"), 1, -2),
        new(name("b"), 1, 2),
        new(name("b"), -1, 2),
        new(name("b"), 1, -1, [(0, [1])]),
        new(name("b"), -1, 1, [(0, [1])]),
        new(name("b"), -1, -1, [(0, [])]),
        new(name("b"), -1, -1, [(0, [2])]),
        new(name("b"), -1, -1, [(0, [1, 1])]),
        new(name("b"), -1, -1, [(0, [1]), (0, [1])]),
        new(name("b"), -1, -1, [(1, [1])]),
        new(name("b"), no_such="1"),
        new(name("b"), retention_ms="x"),
        new(name("b"), retention_ms=None),
        new(name("b"), cleanup_policy="x"),
    ]
    for topic in bad:
        admin.change(create(topic))
        admin.change(create(topic, validate_only=True))
    admin.change(create(new(name("d")), new(name("d"), 2), new("a b")))
    admin.change(create())
    made(admin, new(name("a.b")))
    admin.change(create(new(name("a_b"))))
    names = [topic.name for topic in good]
    admin.look(partitions(*names, name("b"), name("d"), name("a_b")), version=0)


@_story(ApiKey.DELETE_TOPICS)
def topics_deleted(admin: Admin) -> None:
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a), new(b))

    def delete(*names: str) -> DeleteTopicsRequest:
        states = tuple(DeleteTopicState(name=name) for name in names)
        return DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=10_000)

    admin.change(delete(nope))
    admin.change(delete(""))
    admin.change(delete("a b"))
    admin.change(delete(a, a, nope))
    admin.look(partitions(a, b), version=0)
    admin.change(delete(a, nope))
    admin.look(partitions(a, b), version=0)
    admin.change(delete(a))
    admin.change(delete())


@_story(ApiKey.DELETE_TOPICS)
def topics_named_twice(admin: Admin) -> None:
    """From v6 on an entry has a name or an id."""
    a, nope = admin.topic("a"), admin.topic("nope")
    made(admin, new(a))
    bad: Sequence[Sequence[tuple[str | None, UUID]]] = [
        [(None, NO_ID)],
        [(a, NEVER_AN_ID)],
        [(None, NEVER_AN_ID)],
        [(nope, NO_ID)],
        [(a, NO_ID)] * 2,
    ]
    for entries in bad if admin.version >= 6 else bad[-1:]:
        for times in (1, 2, 3) if len(entries) == 1 else (1,):
            states = tuple(DeleteTopicState(name=name, topic_id=id_) for name, id_ in entries) * times
            names = tuple(name for name, _ in entries if name is not None)
            admin.change(DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=10_000))
            admin.look(partitions(a), version=0)


@_story(ApiKey.CREATE_PARTITIONS)
def partitions_created(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t, 2))

    def grow(
        name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> CreatePartitionsTopic:
        given = None
        if assignments is not None:
            given = tuple(CreatePartitionsAssignment(broker_ids=tuple(ids)) for ids in assignments)
        return CreatePartitionsTopic(name=name, count=count, assignments=given)

    def ask(*topics: CreatePartitionsTopic, validate_only: bool = False) -> None:
        admin.change(CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only))
        admin.look(partitions(t), version=0)

    bad = [
        grow(nope, 3),
        grow("", 3),
        grow(t, 2),
        grow(t, 1),
        grow(t, 0),
        grow(t, -1),
        grow(t, 4, []),
        grow(t, 4, [[1]]),
        grow(t, 4, [[1], [1], [1]]),
        grow(t, 4, [[2], [1]]),
        grow(t, 4, [[1, 1], [1]]),
        grow(t, 4, [[], [1]]),
    ]
    for topic in bad:
        ask(topic, validate_only=True)
        ask(topic)
    ask(grow(t, 3), grow(t, 4))
    ask(grow(t, 4), validate_only=True)
    ask(grow(t, 4), grow(nope, 4))
    ask(grow(t, 6, [[1], [1]]))
    ask()


@_story(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def pages_of_partitions(admin: Admin) -> None:
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a, 3), new(b, 2))
    for names in ([a], [a, nope, b], [a, a], ["a b"], [nope, "a b"]):
        admin.look(partitions(*names))
    for limit in (-1, 0, 1, 2, 3, 4, 5):
        admin.look(partitions(b, a, limit=limit))
    for cursor in ((a, 0), (a, 2), (a, 3), (a, 9), (b, 0), (b, 1), (a, -1), (nope, 0), ("", 0), ("zz", 0)):
        admin.look(partitions(b, a, limit=2, cursor=cursor))
        admin.look(partitions(limit=1, cursor=("zz", cursor[1])))


@_story(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def partitions_of_odd_topics(admin: Admin) -> None:
    a, b = admin.topic("a"), admin.topic("b")
    made(admin, new(a, 2), new(b, 2))
    for names in ([""], [a, ""], [a, "", a, "__consumer_offsets", ""], [a, a, b]):
        for cursor in (None, ("", 0), ("", -1), (a, 0), (b, -1), ("zz", 0)):
            admin.look(partitions(*names, cursor=cursor))


@_story(ApiKey.METADATA)
def metadata_of_odd_topics(admin: Admin) -> None:
    """From v10 on a topic may have an id, from v12 on it is asked."""
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a, 2), new(b))

    def of(*topics: tuple[str | None, UUID], **more: bool) -> None:
        if admin.version >= 10 or all(name is not None for name, _ in topics):
            named = tuple(MetadataRequestTopic(name=name, topic_id=id_) for name, id_ in topics)
            admin.look(MetadataRequest(topics=named, allow_auto_topic_creation=False, **more))

    a_id, b_id = admin.topic_id(a), admin.topic_id(b)
    of((a, NO_ID), (nope, NO_ID), (a, NO_ID), ("", NO_ID), ("a b", NO_ID))
    for id_ in (a_id, NEVER_AN_ID):
        for name in (None, a, b, nope, ""):
            of((name, id_))
            of((name, id_), (b, NO_ID))
    of((None, a_id), (None, b_id), (None, a_id), (None, NEVER_AN_ID), (None, NEVER_AN_ID))
    of((None, a_id), (None, NO_ID))
    of((None, NO_ID))
    of(
        (None, NO_ID),
        (a, NO_ID),
        ("__consumer_offsets", NO_ID),
        (None, NO_ID),
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


# -- leaders


@_story(ApiKey.ELECT_LEADERS)
def elections(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t, 3))
    for election_type in (0, 1, 2, 7, -1):
        admin.change(elect(election_type, (t, (0, 1, 1)), (nope, (0,))))
        admin.change(elect(election_type, (t, (0,)), (t, ()), (t, (2, 0, 9, -1)), ("", (0,)), ("a b", ())))
        admin.change(elect(election_type))
    for election_type in (2, -1):  # below v1 there is no type, and so no fault
        if admin.version >= 1:
            admin.change(elect(election_type, all_partitions=True))


@_story(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def reassignments(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t, 3))

    def to(*wanted: tuple[str, int, Sequence[int] | None], allow: bool = True) -> None:
        topics = tuple(
            ReassignableTopic(
                name=name,
                partitions=(
                    ReassignablePartition(
                        partition_index=index, replicas=None if replicas is None else tuple(replicas)
                    ),
                ),
            )
            for name, index, replicas in wanted
        )
        unnamed = any(name == nope or index > 2 or replicas is None for name, index, replicas in wanted)
        admin.change(
            AlterPartitionReassignmentsRequest(
                timeout_ms=10_000, allow_replication_factor_change=allow, topics=topics
            ),
            meant=TEXT if unnamed else "",
        )

    for allow in (True, False):
        to(allow=allow)
        to((t, 0, [1]), (t, 0, [1]), (t, 1, []), (t, 2, [2]), (t, 2, [1, 1]), (t, 0, [1, 2]), allow=allow)
        to((t, 9, [1]), (nope, 0, [1]), (t, 0, None), allow=allow)


@_story(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def reassignments_listed(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t))
    for names in ([], [t], [nope, t, t]):
        topics = tuple(
            ListPartitionReassignmentsTopics(name=name, partition_indexes=(0, 9)) for name in names
        )
        admin.look(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics))
    admin.look(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None))


# -- access control lists


def _codes() -> Iterator[dict[str, int]]:
    """Resource type, pattern type, operation and permission: one of them odd, the others good."""
    good = {"resource": 2, "pattern": 3, "operation": 2, "permission": 3}
    yield good
    for name in good:
        for odd in (0, 1, 99, -1):
            yield {**good, name: odd}


@_story(ApiKey.CREATE_ACLS)
def rules_made(admin: Admin) -> None:
    for codes in _codes():
        rule = AclCreation(
            resource_type=codes["resource"],
            resource_name="t",
            resource_pattern_type=codes["pattern"],
            principal="User:a",
            host="*",
            operation=codes["operation"],
            permission_type=codes["permission"],
        )
        admin.change(CreateAclsRequest(creations=(rule,)))


def _rule_filter(codes: dict[str, int]) -> dict[str, Any]:
    return {
        "resource_type_filter": codes["resource"],
        "resource_name_filter": "t",
        "pattern_type_filter": codes["pattern"],
        "principal_filter": None,
        "host_filter": None,
        "operation": codes["operation"],
        "permission_type": codes["permission"],
    }


@_story(ApiKey.DELETE_ACLS)
def rules_deleted(admin: Admin) -> None:
    for codes in _codes():
        admin.change(DeleteAclsRequest(filters=(DeleteAclsFilter(**_rule_filter(codes)),)))


@_story(ApiKey.DESCRIBE_ACLS)
def rules_described(admin: Admin) -> None:
    for codes in _codes():
        admin.change(DescribeAclsRequest(**_rule_filter(codes)))


# -- log directories, quotas


@_story(ApiKey.DESCRIBE_LOG_DIRS)
def log_dirs(admin: Admin) -> None:
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a, 3), new(b))

    def of(*topics: tuple[str, Sequence[int]]) -> DescribeLogDirsRequest:
        return DescribeLogDirsRequest(
            topics=tuple(
                DescribableLogDirTopic(topic=name, partitions=tuple(which)) for name, which in topics
            )
        )

    admin.look(of((a, (0, 1, 2)), (b, (0,))))
    admin.look(DescribeLogDirsRequest(topics=None))
    admin.look(of())
    admin.look(of((a, ())))
    admin.look(of((a, (0, 7)), (nope, (0,))))
    admin.look(of((a, (0,)), (a, (1,)), (a, (0,))))


@_story(ApiKey.DESCRIBE_CLIENT_QUOTAS)
def client_quotas(admin: Admin) -> None:
    exact, default, specified = range(3)
    filters: Sequence[Sequence[tuple[str, int, str | None]]] = [
        [],
        [("user", exact, "x")],
        [("user", default, None), ("client-id", specified, None)],
        [("ip", exact, "127.0.0.1")],
        [("nope", specified, None)],
        [("", specified, None)],
        [("user", 5, None)],
        [("user", exact, None)],
        [("user", default, "x")],
        [("user", specified, "x")],
        [("user", specified, None), ("user", specified, None)],
        [("ip", specified, None), ("user", specified, None)],
    ]
    for components in filters:
        for strict in (False, True):
            data = tuple(
                ComponentData(entity_type=entity_type, match_type=match_type, match=match)
                for entity_type, match_type, match in components
            )
            admin.look(DescribeClientQuotasRequest(components=data, strict=strict))
