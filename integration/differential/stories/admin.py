"""Stories of administrators, with good and bad requests; each runs at every version of its API."""

from __future__ import annotations

from collections.abc import Sequence

from integration.differential.stories.admin_talk import Admin, story
from schemas.api_key import ApiKey
from schemas.messages import alter_configs as legacy
from schemas.messages import incremental_alter_configs as incremental
from schemas.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from schemas.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
TEXT, ELR, NOT_SERVED, OPERATION = "D-error-text", "D-elr", "D-config-resources", "D-unknown-operation"
UNANSWERED = "D-one-resource-twice"
LISTENERS, NO_THREADS = "D-listener-configs", "D-no-threads"

# Configs that depend on how the broker was started, and those that only one of the servers has.
PER_SERVER = (
    "advertised.listeners allow.everyone.if.no.acl.found broker.heartbeat.interval.ms broker.id "
    "broker.session.timeout.ms brokers control.path "
    "controller.listener.names controller.quorum.voters flush.policy group.heartbeat.park.enable "
    "group.rebalances.max.bytes group.rebalances.topic.enable http.listener http.steering.enable http.token "
    "group.initial.rebalance.delay.ms "
    "listener.security.protocol.map listeners log.dirs min.insync.replicas "
    "offsets.topic.replication.factor process.roles producer.id.expiration.check.interval.ms "
    "share.coordinator.state.topic.min.isr share.coordinator.state.topic.replication.factor super.users "
    "transaction.state.log.min.isr transaction.state.log.replication.factor "
    "upstream.advertised.host.pattern upstream.bootstrap.servers "
    "upstream.drain.timeout.ms upstream.groups.adopt.enable upstream.groups.group.id "
    "upstream.groups.lease.ms upstream.groups.protocols upstream.groups.session.timeout.ms "
    "upstream.groups.topic upstream.groups.topic.partitions upstream.groups.topic.replication.factor "
    "upstream.identities.file upstream.offsets.mirror.enable upstream.sasl.pass.through.enable "
    "upstream.start.timeout.ms"
).split()
# Kafka can change its listeners' security at run time; kshim cannot.
READ_ONLY_HERE = (
    "sasl.enabled.mechanisms sasl.jaas.config ssl.cipher.suites ssl.client.auth ssl.enabled.protocols "
    "ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location "
    "ssl.keystore.password ssl.keystore.type ssl.truststore.certificates ssl.truststore.location "
    "ssl.truststore.password ssl.truststore.type"
).split()
OF_GROUPS = (
    "group.consumer.assignment.interval.ms",
    "group.consumer.regex.refresh.interval.ms",
    "group.coordinator.rebalance.protocols",
)
"""D-assignment-interval, D-no-new-groups, and one that Apache Kafka does not list."""
ELR_CONFIG = ("min.insync.replicas",)
"""Apache Kafka sets it cluster-wide when its storage is formatted (KIP-966)."""


# ---- requests


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
    """Create topics and wait for them; Apache Kafka answers CreateTopics before its broker knows of them."""
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


# ---- configs


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
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


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
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


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
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


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
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


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def configs_of_brokers(admin: Admin) -> None:
    """The end undoes every change."""
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
        ("1", [("sasl.kerberos.min.time.before.relogin", SET, "58000"), ("ssl.provider", SET, "x")]),
        ("1", [("sasl.kerberos.min.time.before.relogin", DELETE, None), ("ssl.provider", DELETE, None)]),
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
            "sasl.kerberos.min.time.before.relogin",
            "ssl.provider",
            "leader.replication.throttled.rate",
        )
        admin.look(describe((BROKER, "", None), (BROKER, "1", keys)), version=4, but_for=ELR_CONFIG)
        admin.look(describe((TOPIC, t, ("file.delete.delay.ms", "cleanup.policy"))), version=4)


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
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
        ("max.connections", "0", ""),
        ("max.connections", "-1", ""),
        ("max.connection.creation.rate", "0", ""),
        ("max.connection.creation.rate", "-1", ""),
        ("max.connections.per.ip", "-1", ""),
        ("sasl.kerberos.min.time.before.relogin", "x", ""),
        ("sasl.kerberos.min.time.before.relogin", "-7", ""),
        ("sasl.kerberos.principal.to.local.rules", "a,b", ""),
        ("sasl.login.refresh.buffer.seconds", "40000", ""),
        ("sasl.login.refresh.window.factor", "70", ""),
        ("sasl.mechanism.inter.broker.protocol", "x", ""),
        ("ssl.protocol", "x", ""),
        ("ssl.endpoint.identification.algorithm", "", ""),
        ("ssl.engine.factory.class", "x", ""),
        ("principal.builder.class", "x", ""),
        ("ssl.keystore.location", "x", ""),
        ("ssl.truststore.password", "x", ""),
        ("max.connections.per.ip.overrides", "x", ""),
        ("max.connections.per.ip.overrides", "10.0.0.7:x", ""),
        ("max.connections.per.ip.overrides", "not a host:3", ""),
        ("max.connections.per.ip.overrides", "10.0.0.7:-1, ::1:3", ""),
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
        admin.change(alter((BROKER, name, [("no.such", APPEND, "5")]), validate_only=True))
    admin.change(alter((BROKER, "", [("listeners", SET, "x")]), validate_only=True), meant=TEXT)


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def loggers(admin: Admin) -> None:
    """The root logger is the only logger that both have."""
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
    admin.change(alter((LOGGER, "1", [("root", 7, "INFO")]), validate_only=True))
    admin.change(alter((LOGGER, "1", [("root", SET, "INFO")])))
    admin.look(describe((LOGGER, "1", ("root", "no.such"))), version=4)


@story(ApiKey.ALTER_CONFIGS)
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


@story(ApiKey.DESCRIBE_CONFIGS)
def described(admin: Admin) -> None:
    t = admin.topic("t")
    made(admin, new(t, cleanup_policy="compact", segment_ms="1000", max_message_bytes="5000"))
    for synonyms in (True, False):
        for documentation in (True, False):
            flags = {"synonyms": synonyms, "documentation": documentation}
            admin.look(describe((TOPIC, t, None), **flags), but_for=ELR_CONFIG)
            but_for = [*PER_SERVER, *READ_ONLY_HERE, *OF_GROUPS]
            admin.look(describe((BROKER, "1", None), **flags), but_for=but_for)
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
    admin.look(describe((CLIENT_METRICS, "m", None)), meant=NOT_SERVED)


@story(ApiKey.LIST_CONFIG_RESOURCES)
def config_resources(admin: Admin) -> None:
    made(admin, new(admin.topic("b")), new(admin.topic("a")))
    for types in ((), (2,), (4,), (8,), (4, 2), (2, 2), (16,), (32,), (3,), (2, 99)):
        admin.look(ListConfigResourcesRequest(resource_types=types))
