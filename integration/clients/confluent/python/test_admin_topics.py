"""AdminClient and topics: create, enlarge, describe, configure, elect leaders, delete records and topics."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from integration.clients.confluent.python.clients import (
    ANSWER_S,
    VERSION,
    name_of,
    needs,
    outcome,
    outcomes,
    send,
)
from integration.support.awaiting import wait_until
from integration.support.server import Server

TOPIC_OPERATIONS = "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS".split()
GROUP_HAS_ITS_NUMBER = (2, 10)
"""2.6 describes a group's configs under a number that no resource type has."""
CLUSTER_OPERATIONS = (
    "CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE".split()
)


def of_topic(name: str, **options: Any) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, name, **options)


def of_broker(**options: Any) -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, "1", **options)


def entry(name: str, value: str | None, operation: str) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType[operation])


def lasting(things: list[Any]) -> list[Any]:
    """The list, never freed: in 2.6 to 2.10 delete_records() releases its argument once too often."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(things))
    return things


def configured(admin: AdminClient, resource: ConfigResource, source: ConfigSource) -> dict[str, str]:
    """The configs that were set on the topic itself."""
    entries = admin.describe_configs([resource])[resource].result(ANSWER_S)
    return {name: found.value for name, found in entries.items() if found.source == source.value}


def wait_configured(admin: AdminClient, name: str, expected: dict[str, str]) -> None:
    """Apache Kafka reports a change a moment after it was made."""
    source = ConfigSource.DYNAMIC_TOPIC_CONFIG
    wait_until(lambda: configured(admin, of_topic(name), source) == expected, ANSWER_S, f"{expected}")


def wait_gone(admin: AdminClient, name: str) -> None:
    wait_until(lambda: name not in admin.list_topics(timeout=ANSWER_S).topics, ANSWER_S, f"{name} is gone")


def test_create_and_delete(admin: AdminClient, topic: str) -> None:
    names = [f"{topic}-{kind}" for kind in ("plain", "assigned", "default", "checked")]
    plain, assigned, default, checked = names
    made = [
        NewTopic(plain, 3, 1, config={"retention.ms": "3600000"}),
        NewTopic(assigned, 2, replica_assignment=[[1], [1]]),
        NewTopic(default),
    ]
    assert outcomes(admin.create_topics(made)) == dict.fromkeys(names[:3])
    assert outcomes(admin.create_topics([NewTopic(checked, 2, 1)], validate_only=True)) == {checked: None}
    wait_until(lambda: {*names[:3]} <= {*admin.list_topics(timeout=ANSWER_S).topics}, ANSWER_S, "all three")
    listed = admin.list_topics(timeout=ANSWER_S).topics
    assert {name: len(listed[name].partitions) for name in listed.keys() & names} == {
        plain: 3,
        assigned: 2,
        default: 1,
    }
    unknown = f"{topic}-unknown"
    deleted = outcomes(admin.delete_topics([*names[:3], unknown]))
    assert deleted == {**dict.fromkeys(names[:3]), unknown: "UNKNOWN_TOPIC_OR_PART"}
    for name in names[:3]:
        wait_gone(admin, name)


def test_create_what_cannot_be(admin: AdminClient, new_topic: Callable[..., str]) -> None:
    name = new_topic()
    refused = {
        name: (NewTopic(name, 1, 1), "TOPIC_ALREADY_EXISTS"),
        "a b": (NewTopic("a b", 1, 1), "TOPIC_EXCEPTION"),
        "three": (NewTopic("three", 1, 3), "INVALID_REPLICATION_FACTOR"),
        "seven": (NewTopic("seven", 1, replica_assignment=[[7]]), "INVALID_REPLICA_ASSIGNMENT"),
        "none": (NewTopic("none", 1, 1, config={"no.such.config": "1"}), "INVALID_CONFIG"),
        "soon": (NewTopic("soon", 1, 1, config={"retention.ms": "soon"}), "INVALID_CONFIG"),
    }
    answers = outcomes(admin.create_topics([asked for asked, _ in refused.values()]))
    assert answers == {key: error for key, (_, error) in refused.items()}


def test_create_partitions(admin: AdminClient, new_topic: Callable[..., str], topic: str) -> None:
    grows, stays = new_topic(2, suffix="-grows"), new_topic(2, suffix="-stays")
    unknown = f"{topic}-unknown"
    asked = [NewPartitions(grows, 5), NewPartitions(stays, 1), NewPartitions(unknown, 3)]
    assert outcomes(admin.create_partitions(asked)) == {
        grows: None,
        stays: "INVALID_PARTITIONS",
        unknown: "UNKNOWN_TOPIC_OR_PART",
    }
    only_checked = admin.create_partitions([NewPartitions(stays, 7)], validate_only=True)
    assert outcomes(only_checked) == {stays: None}
    assigned = admin.create_partitions([NewPartitions(stays, 3, replica_assignment=[[1]])])
    assert outcomes(assigned) == {stays: None}

    def sizes() -> list[int]:
        listed = admin.list_topics(timeout=ANSWER_S).topics
        return [len(listed[name].partitions) for name in (grows, stays)]

    wait_until(lambda: sizes() == [5, 3], ANSWER_S, sizes)


def test_describe_and_alter_configs(admin: AdminClient, new_topic: Callable[..., str], topic: str) -> None:
    name = new_topic(retention_ms="3600000")
    wait_configured(admin, name, {"retention.ms": "3600000"})
    entries = admin.describe_configs([of_topic(name)])[of_topic(name)].result(ANSWER_S)
    default, own = entries["segment.bytes"], entries["retention.ms"]
    assert (default.value, default.is_default, default.is_read_only) == ("1073741824", True, False)
    assert (own.is_default, own.is_sensitive, own.source) == (
        False,
        False,
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    )

    wanted = {"cleanup.policy": "compact", "flush.ms": "7"}
    assert outcomes(admin.alter_configs([of_topic(name, set_config=wanted)])) == {of_topic(name): None}
    wait_configured(admin, name, wanted)  # configs that are not named go back to their defaults
    refused = {
        of_topic(name, set_config={"no.such.config": "1"}): "INVALID_CONFIG",
        of_topic(f"{topic}-unknown", set_config={"retention.ms": "1"}): "UNKNOWN_TOPIC_OR_PART",
    }
    assert outcomes(admin.alter_configs(list(refused))) == refused
    only_checked = admin.alter_configs([of_topic(name, set_config={})], validate_only=True)
    assert outcomes(only_checked) == {of_topic(name): None}
    wait_configured(admin, name, wanted)
    unknown = of_topic(f"{topic}-unknown")
    assert outcomes(admin.describe_configs([unknown])) == {unknown: "UNKNOWN_TOPIC_OR_PART"}


def test_incremental_alter_configs(admin: AdminClient, new_topic: Callable[..., str], topic: str) -> None:
    name = new_topic(retention_ms="3600000", cleanup_policy="compact")

    def alter(*entries: ConfigEntry) -> Any:
        resource = of_topic(name, incremental_configs=list(entries))
        return outcomes(admin.incremental_alter_configs([resource]))[resource]

    added = entry("cleanup.policy", "delete", "APPEND")
    assert alter(entry("retention.ms", None, "DELETE"), added, entry("flush.ms", "8", "SET")) is None
    wait_configured(admin, name, {"cleanup.policy": "compact,delete", "flush.ms": "8"})
    assert alter(entry("cleanup.policy", "compact", "SUBTRACT")) is None
    wait_configured(admin, name, {"cleanup.policy": "delete", "flush.ms": "8"})
    assert alter(entry("retention.ms", "soon", "SET")) == "INVALID_CONFIG"
    assert alter(entry("no.such.config", "1", "SET")) == "INVALID_CONFIG"
    unknown = of_topic(f"{topic}-unknown", incremental_configs=[entry("flush.ms", "1", "SET")])
    assert outcomes(admin.incremental_alter_configs([unknown])) == {unknown: "UNKNOWN_TOPIC_OR_PART"}
    wait_configured(admin, name, {"cleanup.policy": "delete", "flush.ms": "8"})


def test_configs_of_a_broker(admin: AdminClient) -> None:
    source, interval = ConfigSource.DYNAMIC_BROKER_CONFIG, "log.index.interval.bytes"

    def alter(*entries: ConfigEntry) -> Any:
        resource = of_broker(incremental_configs=list(entries))
        return outcomes(admin.incremental_alter_configs([resource]))[resource]

    assert alter(entry(interval, "5000", "SET")) is None
    wait_until(lambda: configured(admin, of_broker(), source) == {interval: "5000"}, ANSWER_S, "set")
    assert alter(entry("num.partitions", "2", "SET")) == "INVALID_REQUEST"  # a cluster-wide config
    assert alter(entry(interval, None, "DELETE")) is None
    wait_until(lambda: configured(admin, of_broker(), source) == {}, ANSWER_S, "set back")
    entries = admin.describe_configs([of_broker()])[of_broker()].result(ANSWER_S)
    node_id = entries["node.id"]
    assert (node_id.value, node_id.is_read_only) == ("1", True)


def test_configs_of_a_group(admin: AdminClient) -> None:
    resource = ConfigResource(ResourceType.GROUP, "any")
    answer = outcome(admin.describe_configs([resource])[resource])
    if VERSION < GROUP_HAS_ITS_NUMBER:
        assert answer == "INVALID_REQUEST"
    else:
        assert "consumer.session.timeout.ms" in answer


@needs("describe_topics")
def test_describe_topics(
    broker: Server, admin: AdminClient, new_topic: Callable[..., str], topic: str
) -> None:
    name, unknown = new_topic(3), f"{topic}-unknown"
    names = confluent_kafka.TopicCollection([name, unknown])
    answers = outcomes(admin.describe_topics(names))
    assert answers[unknown] == "UNKNOWN_TOPIC_OR_PART"
    found = answers[name]
    assert (found.name, found.is_internal, found.authorized_operations) == (name, False, None)
    assert str(found.topic_id) not in ("", "AAAAAAAAAAAAAAAAAAAAAA")
    assert [partition.id for partition in found.partitions] == [0, 1, 2]
    for partition in found.partitions:
        for node in (partition.leader, *partition.replicas, *partition.isr):
            assert (node.id, node.host, node.port) == (1, broker.host, broker.port)
        assert len(partition.replicas) == len(partition.isr) == 1

    names = confluent_kafka.TopicCollection([name])
    described = outcome(admin.describe_topics(names, include_authorized_operations=True)[name])
    assert [operation.name for operation in described.authorized_operations] == TOPIC_OPERATIONS
    assert outcomes(admin.describe_topics(confluent_kafka.TopicCollection([]))) == {}


@needs("describe_cluster")
def test_describe_cluster(broker: Server, admin: AdminClient) -> None:
    found = outcome(admin.describe_cluster())
    assert found.cluster_id == admin.list_topics(timeout=ANSWER_S).cluster_id
    nodes = [(node.id, node.host, node.port) for node in (found.controller, *found.nodes)]
    assert nodes == [(1, broker.host, broker.port)] * 2
    assert found.authorized_operations is None
    described = outcome(admin.describe_cluster(include_authorized_operations=True))
    assert [operation.name for operation in described.authorized_operations] == CLUSTER_OPERATIONS


@needs("list_offsets")
@pytest.mark.parametrize("isolation_level", ["READ_COMMITTED", "READ_UNCOMMITTED"])
def test_list_offsets(
    admin: AdminClient, producer: Producer, new_topic: Callable[..., str], isolation_level: str
) -> None:
    from confluent_kafka.admin import OffsetSpec

    name = new_topic(2, retention_ms="-1")
    for number in range(10):
        send(producer, name, str(number), partition=0, timestamp=1000 * (number + 1))
    expected = {  # offset and timestamp of the full and of the empty partition, by what was asked for
        OffsetSpec.earliest(): ((0, -1), (0, -1)),
        OffsetSpec.latest(): ((10, -1), (0, -1)),
        OffsetSpec.max_timestamp(): ((9, 10_000), (-1, -1)),
        OffsetSpec.for_timestamp(3500): ((3, 4000), (-1, -1)),
        OffsetSpec.for_timestamp(10**14): ((-1, -1), (-1, -1)),
    }
    level = confluent_kafka.IsolationLevel[isolation_level]
    for spec, answers in expected.items():
        partitions = [TopicPartition(name, 0), TopicPartition(name, 1)]
        found = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=level)
        told = {partition.partition: outcome(future) for partition, future in found.items()}
        assert tuple((told[index].offset, told[index].timestamp) for index in (0, 1)) == answers
    unknown = {TopicPartition(name, 9): OffsetSpec.latest()}
    assert list(outcomes(admin.list_offsets(unknown)).values()) == ["_NOENT"]


@needs("delete_records")
def test_delete_records(
    admin: AdminClient,
    producer: Producer,
    new_consumer: Callable[..., Consumer],
    new_topic: Callable[..., str],
    topic: str,
) -> None:
    name = new_topic(2)
    send(producer, name, *map(str, range(10)), partition=0)
    asked = [TopicPartition(name, 0, 3), TopicPartition(name, 1, 5), TopicPartition(f"{topic}-no", 0, 1)]
    first, beyond, unknown = outcomes(admin.delete_records(lasting(asked))).values()
    assert (first.low_watermark, beyond, unknown) == (3, "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PART")
    consumer = new_consumer()
    assert consumer.get_watermark_offsets(TopicPartition(name, 0), ANSWER_S) == (3, 10)
    (rest,) = outcomes(admin.delete_records(lasting([TopicPartition(name, 0, OFFSET_END)]))).values()
    assert rest.low_watermark == 10
    assert consumer.get_watermark_offsets(TopicPartition(name, 0), ANSWER_S) == (10, 10)


@needs("elect_leaders")
@pytest.mark.parametrize("kind", ["PREFERRED", "UNCLEAN"])
def test_elect_leaders(admin: AdminClient, new_topic: Callable[..., str], topic: str, kind: str) -> None:
    name = new_topic()
    kind = confluent_kafka.ElectionType[kind]
    asked = [TopicPartition(name, 0), TopicPartition(name, 7), TopicPartition(f"{topic}-unknown", 0)]
    answers = outcome(admin.elect_leaders(kind, asked))
    told = {(partition.topic, partition.partition): name_of(error) for partition, error in answers.items()}
    assert told == {
        (name, 0): "ELECTION_NOT_NEEDED",
        (name, 7): "UNKNOWN_TOPIC_OR_PART",
        (f"{topic}-unknown", 0): "UNKNOWN_TOPIC_OR_PART",
    }
    assert outcome(admin.elect_leaders(kind)) == {}  # of all partitions; none needs an election
