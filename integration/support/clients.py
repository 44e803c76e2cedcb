"""kafka-python 2.0, 2.2, 2.3 and 3.0 behind one set of names, so that tests are written once.

The functions do not change a client; they only call the method that the installed version has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

T = TypeVar("T")

VERSION = tuple(int(part) for part in kafka.__version__.split(".")[:2])

ASSIGNORS: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
if VERSION >= (3, 0):
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    ASSIGNORS["cooperative-sticky"] = CooperativeStickyAssignor

# 2.0.2's sticky assignor raises TypeError when a member that owns partitions rejoins, with any broker
CAN_REJOIN = [name for name in ASSIGNORS if not (name == "sticky" and VERSION == (2, 0))]

OF_TOPIC = 1
"""The number that DescribeConfigs gives the source of a topic's own config."""

HAS_IDEMPOTENCE = VERSION >= (2, 2)

# kafka-python 3.0.12 loses its assignment when a poll() ends between its SyncGroup request and the response,
# with any broker. A poll that has records still returns at once.
POLL_MS = 5000

# A killed server is back within a second, so reconnect that often
RECONNECT = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 500}
if "api_version_auto_timeout_ms" in KafkaConsumer.DEFAULT_CONFIG:
    RECONNECT["api_version_auto_timeout_ms"] = 20_000  # the default, 2 s, can be too short on a busy machine


def new_producer(bootstrap: str, **options: Any) -> KafkaProducer:
    """A producer that waits for the disk and retries until the server is back."""
    settings: dict[str, Any] = {"acks": "all", "retries": 10_000, "retry_backoff_ms": 50, **RECONNECT}
    return KafkaProducer(bootstrap_servers=bootstrap, **{**settings, **options})


def new_consumer(bootstrap: str, *topics: str, **options: Any) -> KafkaConsumer:
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **RECONNECT}
    return KafkaConsumer(*topics, bootstrap_servers=bootstrap, **{**settings, **options})


def offset_and_metadata(offset: int, metadata: str = "") -> OffsetAndMetadata:
    """Make an OffsetAndMetadata. Before kafka-python 2.1 it has no `leader_epoch`."""
    return OffsetAndMetadata(*([offset, metadata, -1][: len(OffsetAndMetadata._fields)]))


def until_served(call: Callable[[], T], timeout_s: float = 20) -> T:
    """Call `call`, again and again while the server is starting, and return the result."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return call()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(RECONNECT["reconnect_backoff_ms"] / 1000)


def commit(consumer: KafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
    """Commit until it is acknowledged. When the connection is lost, 3.0 raises, and 2.x retries by itself."""
    committed = {tp: offset_and_metadata(offset) for tp, offset in offsets.items()}
    until_served(lambda: consumer.commit(committed))


def generation_id(consumer: KafkaConsumer) -> int:
    """The consumer's generation. It is read from a private field, as the client has no public one."""
    return int(consumer._coordinator._generation.generation_id)


def read_all(bootstrap: str, topic: str, count: int, timeout_s: float = 20, **options: Any) -> list[Any]:
    """The first `count` records of the whole topic, by partition and offset, read without a group."""
    consumer = new_consumer(bootstrap, **options)
    try:
        return read_from(consumer, topic, count, timeout_s)
    finally:
        consumer.close()


def count_records(bootstrap: str, topic: str) -> int:
    """How many records a topic has, if none was deleted: the sum of its end offsets."""
    consumer = new_consumer(bootstrap)
    try:
        partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
        return sum(consumer.end_offsets(partitions).values())
    finally:
        consumer.close()


def read_from(consumer: KafkaConsumer, topic: str, count: int, timeout_s: float = 20) -> list[Any]:
    partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    records = poll_records(consumer, count, timeout_s)
    return sorted(records, key=lambda record: (record.partition, record.offset))


def poll_records(consumer: KafkaConsumer, count: int, timeout_s: float = 20) -> list[Any]:
    """Poll until there are `count` records or more. Raises AssertionError if they do not come in time."""
    records: list[Any] = []
    deadline = time.monotonic() + timeout_s
    while len(records) < count:
        if time.monotonic() > deadline:
            raise AssertionError(f"{len(records)} of {count} records within {timeout_s} s")
        for batch in consumer.poll(timeout_ms=POLL_MS).values():
            records.extend(batch)
    return records


@dataclass(frozen=True)
class GroupMember:
    member_id: str
    client_id: str
    client_host: str
    assignment: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class GroupDescription:
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...]


class Admin:
    """The admin client, with one name for each call that the versions name differently.

    Make a new one after the server was killed: when 2.2 or 2.3 loses its connection it may hang for 30 s.
    """

    def __init__(self, bootstrap: str) -> None:
        self.client = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=10_000, **RECONNECT)

    def close(self) -> None:
        self.client.close()

    # ---- topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        configs: dict[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        self.client.create_topics(
            [NewTopic(name, partitions, replication_factor, topic_configs=configs or {})]
        )

    def delete_topic(self, name: str) -> None:
        self.client.delete_topics([name])

    def add_partitions(self, name: str, total: int) -> None:
        self.client.create_partitions({name: NewPartitions(total)})

    def set_configs(self, topic: str, configs: dict[str, str]) -> None:
        """Set configs of a topic. With 2.x, its other configs return to their defaults."""
        self.client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])

    def configs(self, topic: str) -> dict[str, str]:
        """The configs that were set on the topic itself."""
        described = self.client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        if VERSION >= (3, 0):
            found = described["topic"][topic].items()
            return {
                name: entry["value"]
                for name, entry in found
                if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG"
            }
        ((_, _, _, _, entries),) = described[0].resources
        return {name: value for name, value, _, source, *_ in entries if source == OF_TOPIC}

    def list_topics(self) -> set[str]:
        return set(self.client.list_topics())

    def partitions(self, name: str) -> dict[int, int]:
        """Partition index -> leader's node id; empty while the topic does not exist."""
        for topic in self.client.describe_topics([name]):
            found = topic["name"] if "name" in topic else topic["topic"]
            if found == name and topic["error_code"] == 0:
                return {p.get("partition_index", p.get("partition")): _leader(p) for p in topic["partitions"]}
        return {}

    # ---- groups

    def list_groups(self) -> dict[str, str]:
        """group_id -> protocol_type."""
        if VERSION >= (3, 0):
            return {group["group_id"]: group["protocol_type"] for group in self.client.list_groups()}
        return dict(self.client.list_consumer_groups())

    def describe_group(self, group_id: str) -> GroupDescription:
        if VERSION >= (3, 0):
            return _described_3(self.client.describe_groups([group_id])[group_id])
        (description,) = self.client.describe_consumer_groups([group_id])
        return _described_2(description)

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """(topic, partition) -> committed offset, for all that the group has committed."""
        if VERSION >= (3, 0):
            offsets = self.client.list_group_offsets([group_id])[group_id]
        else:
            offsets = self.client.list_consumer_group_offsets(group_id)
        return {(tp.topic, tp.partition): committed.offset for tp, committed in offsets.items()}

    def delete_group(self, group_id: str) -> str:
        """Delete a group. Return "OK", or the name of Kafka's error without its ending `Error`."""
        if VERSION >= (3, 0):
            return str(self.client.delete_groups([group_id])[group_id]).removesuffix("Error")
        ((_, error),) = self.client.delete_consumer_groups([group_id])
        return "OK" if error.__name__ == "NoError" else str(error.__name__).removesuffix("Error")


def _leader(partition: dict[str, Any]) -> int:
    return int(partition["leader_id"] if "leader_id" in partition else partition["leader"])


def _described_3(group: dict[str, Any]) -> GroupDescription:
    assert group["error"] is None, group
    members = tuple(
        GroupMember(
            member["member_id"],
            member["client_id"],
            member["client_host"],
            frozenset(
                (topic["topic"], partition)
                for topic in (member["member_assignment"] or {}).get("assigned_partitions", ())
                for partition in topic["partitions"]
            ),
        )
        for member in group["members"]
    )
    return GroupDescription(
        group["group_id"], group["group_state"], group["protocol_type"], group["protocol_data"], members
    )


def _described_2(group: Any) -> GroupDescription:
    assert group.error_code == 0, group
    members = tuple(
        GroupMember(
            member.member_id,
            member.client_id,
            member.client_host,
            frozenset(
                (topic, partition)
                for topic, partitions in getattr(member.member_assignment, "assignment", ())
                for partition in partitions
            ),
        )
        for member in group.members
    )
    return GroupDescription(group.group, group.state, group.protocol_type, group.protocol, members)
