"""Histories of administrators: what they might ask about topics, configs and partitions."""

from __future__ import annotations

import random
from typing import Any

from integration.differential.invented.topics import (
    BAD_NAMES,
    NONE,
    UNKNOWN_ID,
    ZERO_ID,
    A,
    B,
    TopicsAuthor,
)
from integration.differential.words.admin import APPEND, DELETE, SET, SUBTRACT, More, New, Of
from integration.differential.words.history import GROUP, TopicId
from schemas.api_key import ApiKey

TOPIC, BROKER, LOGGER, CLIENT_METRICS, CONSUMER_GROUP = 2, 4, 8, 16, 32
GOOD_CONFIGS: tuple[tuple[str, str], ...] = (
    ("retention.ms", "77"),
    ("retention.ms", "-1"),
    ("retention.bytes", "1000"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "delete"),
    ("compression.type", "gzip"),
    ("compression.gzip.level", "5"),
    ("max.message.bytes", "5000"),
    ("max.decompressed.message.bytes", "5000"),
    ("errors.deadletterqueue.group.enable", "true"),
    ("message.timestamp.type", "LogAppendTime"),
    ("unclean.leader.election.enable", "true"),
    ("preallocate", "TRUE"),
    ("min.cleanable.dirty.ratio", "0.7"),
    ("segment.ms", " 5000 "),
    ("flush.ms", "9"),
    ("leader.replication.throttled.replicas", "0:1,1:1"),
    ("leader.replication.throttled.replicas", "*"),
)
BAD_CONFIGS: tuple[tuple[str, str | None], ...] = (
    ("retention.ms", "x"),
    ("retention.ms", ""),
    ("retention.ms", None),
    ("retention.ms", "-2"),
    ("retention.ms", "1.5"),
    ("retention.bytes", str(2**63)),
    ("cleanup.policy", "x"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "none"),
    ("compression.type", "none"),
    ("compression.gzip.level", "99"),
    ("max.message.bytes", "-1"),
    ("max.decompressed.message.bytes", "2147483640"),
    ("remote.copy.lag.ms", "-2"),
    ("message.timestamp.type", "logappendtime"),
    ("unclean.leader.election.enable", "maybe"),
    ("min.cleanable.dirty.ratio", "2"),
    ("leader.replication.throttled.replicas", "a:b"),
    ("no.such.config", "1"),
    ("", "1"),
    ("remote.storage.enable", "true"),
)
GOOD_GROUP_CONFIGS: tuple[tuple[str, str], ...] = (
    ("consumer.session.timeout.ms", "45000"),
    ("consumer.session.timeout.ms", " 60000 "),
    ("consumer.heartbeat.interval.ms", "5000"),
    ("consumer.heartbeat.interval.ms", "15000"),
    ("consumer.assignment.interval.ms", "0"),
    ("consumer.assignor.offload.enable", "TRUE"),
    ("share.auto.offset.reset", "by_duration:PT1H"),
    ("share.isolation.level", "read_committed"),
    ("streams.num.standby.replicas", "2"),
    ("streams.rack.aware.assignment.tags", "a,b"),
)
BAD_GROUP_CONFIGS: tuple[tuple[str, str | None], ...] = (
    ("consumer.session.timeout.ms", None),
    ("consumer.session.timeout.ms", "44999"),
    ("consumer.heartbeat.interval.ms", "15001"),
    ("consumer.heartbeat.interval.ms", "0"),
    ("consumer.assignment.interval.ms", "x"),
    ("share.auto.offset.reset", "none"),
    ("share.delivery.count.limit", "11"),
    ("streams.num.standby.replicas", "3"),
    ("streams.rack.aware.assignment.tags", "a,a"),
    ("streams.assignor.name", "x"),
    ("errors.deadletterqueue.topic.name", "__x"),
    ("retention.ms", "5"),
)
GROUP_KEYS = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "share.auto.offset.reset",
    "streams.rack.aware.assignment.tags",
    "consumer.assignor.offload.enable",
)
LISTS = ("cleanup.policy", "leader.replication.throttled.replicas", "retention.ms")
KEYS = ("retention.ms", "cleanup.policy", "compression.type", "segment.ms", "no.such", "preallocate")
BROKER_KEYS = ("log.retention.ms", "compression.type", "num.io.threads", "no.such")


class Admin(TopicsAuthor):
    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.topics = {
            self.create: 4,
            self.delete: 2,
            self.create_partitions: 3,
            self.describe_configs: 3,
            self.alter_configs: 2,
            self.change_configs: 4,
            self.configs_of_groups: 1.5,
            self.metadata: 4,
            self.describe_topics: 2,
            self.describe_log_dirs: 1,
            self.elect_leaders: 1,
            self.reassign: 1,
            self.list_reassignments: 0.5,
            self.find_coordinator: 0.3,
            self.list_config_resources: 0.3,
            self.describe_cluster: 0.3,
            self.describe_quotas: 0.3,
            self.describe_passwords: 0.3,
            self.access_control: 0.5,
        }
        self.weigh()

    def write(self) -> None:
        if self.chance.random() < 0.8:
            news = (New(name, count, configs=self.configs()) for name, count in self.partitions.items())
            self.say("create_topics", "admin", *news, era=4)
        self.tell(self.chance.randint(5, 20))
        self.say("describe_topics", "admin", A, B)
        self.say("describe_configs", "admin", Of(TOPIC, A, None), Of(TOPIC, B, None), era=4)

    # ---- topics

    def create(self) -> None:
        topics = [self.new() for _ in range(self.any(1, 1, 1, 2, 3))]
        if self.slips(0.3):
            topics.append(topics[0])
        validate = {"validate_only": True} if self.chance.random() < 0.3 else {}
        self.ask(ApiKey.CREATE_TOPICS, "create_topics", "admin", *topics, **validate)

    def new(self) -> New:
        name = self.good_or(self.any(A, B, GROUP + "-c", GROUP + ".d", GROUP + "_d"), *BAD_NAMES, factor=0.5)
        fields: dict[str, Any] = {
            "partitions": self.good_or(self.any(1, 2, 3, -1), 0, -2, factor=0.5),
            "replicas": self.good_or(self.any(1, -1), 0, 2, -2, factor=0.5),
        }
        if self.chance.random() < 0.2:
            assignments: Any = self.good_or(
                ((0, (1,)), (1, (1,))),
                ((1, (1,)),),
                ((0, (2,)),),
                ((0, ()),),
                ((0, (1, 1)),),
                ((0, (1,)), (0, (1,))),
                factor=2,
            )
            fields |= {"partitions": -1, "replicas": -1, "assignments": assignments}
            if self.slips():
                fields |= self.any({"partitions": 2}, {"replicas": 1})
        return New(name, **fields, configs=self.configs())

    def configs(self) -> tuple[tuple[str, str | None], ...]:
        if self.chance.random() < 0.5:
            return ()
        some: list[tuple[str, str | None]] = [*self.some(GOOD_CONFIGS, 1, 2)]
        if self.slips():
            some.append(self.chance.choice(BAD_CONFIGS))
        return tuple(some)

    def delete(self) -> None:
        topics: list[Any] = []
        for _ in range(self.any(1, 1, 2)):
            topic = self.topic()
            named = self.any(topic, topic, TopicId(topic))
            odd = (TopicId(topic, 1), UNKNOWN_ID, ZERO_ID, (topic, TopicId(topic)), *BAD_NAMES[:4])
            topics.append(self.good_or(named, *odd, factor=0.7))
        if self.slips(0.5):
            topics.append(topics[0])
        self.ask(ApiKey.DELETE_TOPICS, "delete_topics", "admin", *topics)

    def create_partitions(self) -> None:
        topics = []
        for _ in range(self.any(1, 1, 1, 2)):
            count = self.good_or(self.any(2, 3, 4, 5), 0, -1, 1)
            assignments = ((1,),) if self.chance.random() < 0.15 else None
            if self.slips():
                assignments = self.any((), ((2,),), ((1, 1),), ((),), ((1,), (1,)), ((1,), (2,)))
            topics.append(More(self.topic_or_odd(), count, assignments))
        validate = {"validate_only": True} if self.chance.random() < 0.3 else {}
        self.ask(ApiKey.CREATE_PARTITIONS, "create_partitions", "admin", *topics, **validate)

    def topic_or_odd(self) -> str:
        return self.good_or(self.topic(), *BAD_NAMES, factor=0.3)

    def metadata(self) -> None:
        version = self.chance.choice(range(14))
        topics: list[Any] = [self.topic_or_odd() for _ in range(self.any(1, 1, 2, 3))]
        if version >= 12 and self.chance.random() < 0.5:
            topics = [self.any(TopicId(topic), TopicId(topic, 1), topic) for topic in topics]
            if self.slips():
                topics.append(self.any(UNKNOWN_ID, ZERO_ID, (A, TopicId(B)), (A, TopicId(A))))
        elif version >= 10 and self.slips():
            topics.append(self.any(TopicId(A), UNKNOWN_ID, (A, TopicId(A))))
        more = {"authorized": True} if self.chance.random() < 0.2 else {}
        more |= {"creates": True} if self.chance.random() < 0.2 else {}
        self.say("metadata", "admin", *topics, **more, era=version)

    def describe_topics(self) -> None:
        options: dict[str, Any] = {}
        if self.chance.random() < 0.4:
            options["limit"] = self.any(1, 2, 3, 0, -1)
        if self.chance.random() < 0.3:
            options["cursor"] = (self.any(A, B, NONE, ""), self.any(0, 1, 2, 9, -1))
        names = [self.topic_or_odd() for _ in range(self.any(1, 2, 3))]
        self.say("describe_topics", "admin", *names, **options)

    # ---- configs

    def resource(self, configs: Any) -> Of:
        kind = self.good_or(TOPIC, 0, 3, 99, CLIENT_METRICS, CONSUMER_GROUP, factor=0.2)
        return Of(kind, self.topic_or_odd(), configs)

    def describe_configs(self) -> None:
        resources = []
        for _ in range(self.any(1, 1, 2)):
            keys = tuple(self.chance.choices(KEYS, k=self.any(1, 2, 3)))
            resources.append(self.resource(self.any(None, keys, keys, ())))
        if self.chance.random() < 0.3:
            broker = self.good_or(self.any("1", ""), "2", "x", "-1")
            resources.append(Of(self.good_or(BROKER, LOGGER), broker, tuple(self.some(BROKER_KEYS))))
        options = {"synonyms": True} if self.chance.random() < 0.4 else {}
        options |= {"documentation": True} if self.chance.random() < 0.3 else {}
        self.ask(ApiKey.DESCRIBE_CONFIGS, "describe_configs", "admin", *resources, **options)

    def alter_configs(self) -> None:
        resources = [self.resource(self.configs()) for _ in range(self.any(1, 1, 2))]
        resources = list({(each.type, each.name): each for each in resources}.values())
        if self.slips(0.2):
            resources = resources[:1] * 2
        self.ask(ApiKey.ALTER_CONFIGS, "alter_configs", "admin", *resources, **self.validation())

    def change_configs(self) -> None:
        resources = []
        for _ in range(self.any(1, 1, 2)):
            operations = [self.operation() for _ in range(self.any(1, 1, 2, 3))]
            resources.append(self.resource(tuple(operations)))
        if self.slips(0.3):
            resources.append(resources[0])
        if self.slips(0.3):  # alone, because Apache Kafka then changes nothing else in the request
            odd = (self.chance.choice(GOOD_CONFIGS)[0], self.any(4, -1), "1")
            resources = [Of(TOPIC, self.topic(), (odd,))]
        api = ApiKey.INCREMENTAL_ALTER_CONFIGS
        self.ask(api, "change_configs", "admin", *resources, **self.validation())

    def configs_of_groups(self) -> None:
        group_id = self.good_or(self.any(GROUP, GROUP, GROUP + "-other"), "", factor=0.3)
        if self.chance.random() < 0.4:
            of_group = Of(CONSUMER_GROUP, group_id, self.any(GROUP_KEYS, GROUP_KEYS[:2]))
            self.ask(ApiKey.DESCRIBE_CONFIGS, "describe_configs", "admin", of_group, synonyms=True)
            return
        values: list[tuple[str, str | None]] = [*self.some(GOOD_GROUP_CONFIGS, 1, 3)]
        if self.slips():
            values.append(self.chance.choice(BAD_GROUP_CONFIGS))
        named = dict(values)
        if self.chance.random() < 0.4:
            of_group = Of(CONSUMER_GROUP, group_id, tuple(named.items()))
            self.ask(ApiKey.ALTER_CONFIGS, "alter_configs", "admin", of_group, **self.validation())
            return
        operations = [(name, self.good_or(self.any(SET, SET, DELETE), APPEND), named[name]) for name in named]
        of_group = Of(CONSUMER_GROUP, group_id, tuple(operations))
        api = ApiKey.INCREMENTAL_ALTER_CONFIGS
        self.ask(api, "change_configs", "admin", of_group, **self.validation())

    def operation(self) -> tuple[str, int, str | None]:
        name, value = self.chance.choice(BAD_CONFIGS) if self.slips() else self.chance.choice(GOOD_CONFIGS)
        if self.chance.random() < 0.3:
            name = self.chance.choice(LISTS)
            return (
                name,
                self.any(APPEND, SUBTRACT),
                self.any("compact", "delete", "compact,delete", "1:1", ""),
            )
        if self.chance.random() < 0.2:
            return name, DELETE, self.any(None, None, value)
        return name, SET, value

    def validation(self) -> dict[str, Any]:
        return {"validate_only": True} if self.chance.random() < 0.3 else {}

    # ---- partitions

    def partitions_of(self) -> list[tuple[str, tuple[int, ...]]]:
        some = []
        for _ in range(self.any(1, 1, 2)):
            topic = self.topic_or_odd()
            indexes = {self.partition(topic) for _ in range(self.any(1, 2))}
            some.append((topic, tuple(indexes)))
        return some

    def describe_log_dirs(self) -> None:
        options = {"all": True} if self.chance.random() < 0.2 else {}
        self.ask(ApiKey.DESCRIBE_LOG_DIRS, "describe_log_dirs", "admin", *self.partitions_of(), **options)

    def elect_leaders(self) -> None:
        kind = self.good_or(self.any(0, 0, 1), 2, -1)
        self.ask(ApiKey.ELECT_LEADERS, "elect_leaders", "admin", *self.partitions_of(), election_type=kind)

    def reassign(self) -> None:
        topics = []
        for topic, indexes in self.partitions_of():
            brokers: Any = [self.good_or(self.any((1,), None), (), (2,), (1, 1), (1, 2)) for _ in indexes]
            topics.append((topic, tuple(zip(indexes, brokers, strict=True))))
        options = {"may_change_count": False} if self.chance.random() < 0.2 else {}
        api = ApiKey.ALTER_PARTITION_REASSIGNMENTS
        self.ask(api, "reassign", "admin", *topics, **options)

    def list_reassignments(self) -> None:
        topics = self.partitions_of() if self.chance.random() < 0.8 else []
        self.say("list_reassignments", "admin", *topics)

    # ---- the cluster

    def find_coordinator(self) -> None:
        keys = [self.good_or(GROUP, "") for _ in range(self.any(1, 1, 2))]
        key_type = self.good_or(self.any(0, 1), 5, -1)
        self.ask(ApiKey.FIND_COORDINATOR, "find_coordinator", "admin", *keys, key_type=key_type)

    def list_config_resources(self) -> None:
        types = [self.good_or(self.any(TOPIC, BROKER, LOGGER), 3, 99) for _ in range(self.any(1, 2))]
        self.say("list_config_resources", "admin", *types, era=1)

    def describe_cluster(self) -> None:
        options: dict[str, Any] = {"authorized": True} if self.chance.random() < 0.3 else {}
        options |= {"endpoint_type": self.any(0, 2, 3)} if self.slips() else {}
        options |= {"fenced": True} if self.chance.random() < 0.3 else {}
        self.ask(ApiKey.DESCRIBE_CLUSTER, "describe_cluster", "admin", **options)

    def describe_quotas(self) -> None:
        components = [
            (
                self.good_or(self.any("user", "client-id", "ip"), "", "nope"),
                self.good_or(self.any(0, 1, 2), 5, -1, factor=0.5),
                self.any(None, "x", "127.0.0.1"),
            )
            for _ in range(self.any(0, 1, 1, 2))
        ]
        strict = self.any(True, False)
        self.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, "describe_quotas", "admin", *components, strict=strict)

    def describe_passwords(self) -> None:
        self.say("describe_passwords", "admin", *self.some(("", "ann", "bob", "ann"), 0, 3))

    def access_control(self) -> None:
        acl = (
            self.good_or(self.any(1, 2, 3, 4, 5, 6), 0, 7, 99),
            self.any(A, None, ""),
            self.good_or(self.any(1, 2, 3, 4), 0, 9),
            self.any("User:ann", None, "ann", ""),
            self.any("*", None, ""),
            self.good_or(self.any(1, 2, 3, 4), 0, 99),
            self.good_or(self.any(1, 2, 3), 0, 9),
        )
        kind = self.chance.randrange(3)
        if kind == 0:
            self.ask(ApiKey.DESCRIBE_ACLS, "describe_acls", "admin", acl)
        elif kind == 1:
            self.ask(ApiKey.CREATE_ACLS, "create_acls", "admin", *[acl] * self.any(1, 2))
        else:
            self.ask(ApiKey.DELETE_ACLS, "delete_acls", "admin", *[acl] * self.any(1, 2))
