"""A driver of kafka-python, from 2.0.2 to 3."""

from __future__ import annotations

import sys
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.structs import OffsetAndMetadata

from integration.clients.matrix.drivers.lines import Cannot, Polling, data, serve, text

VERSION = tuple(int(part) for part in kafka.__version__.split(".")[:2])
ASSIGNORS: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
TIMEOUT_S = 20
ALL_CONFIGS = {"config_filter": "all"} if VERSION >= (3, 0) else {}


def pairs(partitions: Any) -> list[list[Any]]:
    return sorted([partition.topic, partition.partition] for partition in partitions)


def partitions_of(found: list[list[Any]]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, number in found]


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, polling: Polling) -> None:
        self._polling = polling

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._polling.event("assigned", pairs(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._polling.event("revoked", pairs(revoked))


def poll(consumer: KafkaConsumer) -> list[dict[str, Any]]:
    return [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "key": text(record.key),
            "value": text(record.value),
            "headers": [[name, text(value)] for name, value in record.headers],
            "timestamp": record.timestamp,
        }
        for records in consumer.poll(timeout_ms=50).values()
        for record in records
    ]


class KafkaPython:
    """The calls."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._consumers: dict[str, Polling] = {}
        self._admin_client: Any = None

    def hello(self) -> list[str]:
        return ["kafka-python", kafka.__version__]

    # ---- records

    def produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: int = -1,
        compression: str = "none",
        idempotent: bool = False,
    ) -> list[list[int]]:
        options: dict[str, Any] = {"enable_idempotence": idempotent} if VERSION >= (2, 2) else {}
        if idempotent and not options:
            raise Cannot("no idempotence")
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all" if acks == -1 else acks,
            compression_type=None if compression == "none" else compression,
            **options,
        )
        try:
            return self._sent(producer, topic, records)
        finally:
            producer.close(TIMEOUT_S)

    def _sent(self, producer: Any, topic: str, records: list[dict[str, Any]]) -> list[list[int]]:
        futures = [
            producer.send(
                topic,
                value=data(record["value"]),
                key=data(record.get("key")),
                partition=record.get("partition"),
                headers=[(name, data(value)) for name, value in record.get("headers", ())],
                timestamp_ms=record.get("timestamp"),
            )
            for record in records
        ]
        producer.flush(TIMEOUT_S)
        found = [future.get(TIMEOUT_S) for future in futures]
        return [[each.partition, each.offset] for each in found]

    # ---- consumers

    def open(
        self,
        name: str,
        topics: list[str] | None = None,
        pattern: str | None = None,
        partitions: list[list[Any]] | None = None,
        group: str | None = None,
        reset: str = "earliest",
        assignors: list[str] | None = None,
        instance: str | None = None,
        auto_commit: bool = False,
        session_timeout_ms: int = 10_000,
        max_poll_interval_ms: int = 300_000,
        isolation: str = "read_uncommitted",
    ) -> None:
        unknown = set(assignors or ()) - ASSIGNORS.keys()
        if unknown:
            raise Cannot(f"no assignor {', '.join(unknown)}")
        options: dict[str, Any] = {"isolation_level": isolation} if VERSION >= (2, 1) else {}
        if instance is not None:
            if VERSION < (2, 1):
                raise Cannot("no static members")
            options["group_instance_id"] = instance
        if isolation == "read_committed" and VERSION < (2, 1):
            raise Cannot("no isolation level")

        def make(polling: Polling) -> Any:
            consumer = KafkaConsumer(
                bootstrap_servers=self._bootstrap,
                group_id=group,
                auto_offset_reset=reset,
                enable_auto_commit=auto_commit,
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=session_timeout_ms // 4,
                max_poll_interval_ms=max_poll_interval_ms,
                metadata_max_age_ms=500,
                partition_assignment_strategy=[ASSIGNORS[each] for each in assignors or ["range"]],
                **options,
            )
            if partitions is not None:
                consumer.assign(partitions_of(partitions))
            else:
                consumer.subscribe(topics=topics or (), pattern=pattern, listener=Listener(polling))
            return consumer

        self._consumers[name] = Polling(make, poll)

    def take(self, name: str, count: int, timeout_ms: int) -> list[dict[str, Any]]:
        return self._consumers[name].take(count, timeout_ms)

    def events(self, name: str) -> list[list[Any]]:
        return self._consumers[name].events()

    def assignment(self, name: str) -> list[list[Any]]:
        return pairs(self._consumers[name].call(lambda consumer: consumer.assignment()))

    def commit(self, name: str, offsets: list[list[Any]] | None = None, wait: bool = True) -> None:
        named = None
        if offsets is not None:
            epoch = () if VERSION < (2, 1) else (-1,)
            named = {
                TopicPartition(topic, number): OffsetAndMetadata(offset, metadata, *epoch)
                for topic, number, offset, metadata in offsets
            }
        method = "commit" if wait else "commit_async"
        self._consumers[name].call(lambda consumer: getattr(consumer, method)(named) and None)

    def committed(self, name: str, partitions: list[list[Any]]) -> list[list[Any] | None]:
        consumer = self._consumers[name]
        found = [
            consumer.call(lambda it, each=each: it.committed(each, metadata=True))
            for each in partitions_of(partitions)
        ]
        return [None if each is None else [each.offset, each.metadata] for each in found]

    def position(self, name: str, topic: str, partition: int) -> int:
        where = TopicPartition(topic, partition)
        return int(self._consumers[name].call(lambda consumer: consumer.position(where)))

    def seek(self, name: str, topic: str, partition: int, offset: int | str) -> None:
        where = TopicPartition(topic, partition)
        seek = {
            "beginning": lambda consumer: consumer.seek_to_beginning(where),
            "end": lambda consumer: consumer.seek_to_end(where),
        }.get(str(offset), lambda consumer: consumer.seek(where, offset))
        self._consumers[name].call(seek)

    def seek_to_time(self, name: str, topic: str, partition: int, timestamp_ms: int) -> None:
        where = TopicPartition(topic, partition)

        def seek(consumer: Any) -> None:
            found = consumer.offsets_for_times({where: timestamp_ms})[where]
            if found is None:
                consumer.seek_to_end(where)
            else:
                consumer.seek(where, found.offset)

        self._consumers[name].call(seek)

    def pause(self, name: str, partitions: list[list[Any]]) -> None:
        self._consumers[name].call(lambda consumer: consumer.pause(*partitions_of(partitions)))

    def resume(self, name: str, partitions: list[list[Any]]) -> None:
        self._consumers[name].call(lambda consumer: consumer.resume(*partitions_of(partitions)))

    def stall(self, name: str, ms: int) -> None:
        self._consumers[name].stall(ms)

    def close(self, name: str) -> None:
        self._consumers.pop(name).close(lambda consumer: consumer.close())

    # ---- transactions

    def transact(
        self,
        id: str,
        records: list[list[Any]],
        end: str,
        group: str | None = None,
        offsets: list[list[Any]] | None = None,
    ) -> None:
        if VERSION < (2, 2):
            raise Cannot("no transactions")
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, transactional_id=id)
        try:
            producer.init_transactions()
            producer.begin_transaction()
            for topic, record in records:
                producer.send(topic, data(record["value"]), partition=record.get("partition"))
            if offsets:
                named = {
                    TopicPartition(topic, number): OffsetAndMetadata(offset, "", -1)
                    for topic, number, offset, _ in offsets
                }
                producer.send_offsets_to_transaction(named, group)
            producer.flush(TIMEOUT_S)
            getattr(producer, f"{end}_transaction")()
        finally:
            producer.close(TIMEOUT_S)

    # ---- admin

    @property
    def _admin(self) -> Any:
        if self._admin_client is None:
            self._admin_client = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        return self._admin_client

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def grow_topic(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions({topic: NewPartitions(partitions)})

    def topics(self) -> list[str]:
        return sorted(self._admin.list_topics())

    def ends(self, topic: str) -> list[list[int]]:
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap)
        try:
            found = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
            first, end = consumer.beginning_offsets(found), consumer.end_offsets(found)
            return [[first[each], end[each]] for each in found]
        finally:
            consumer.close()

    def configs(self, topic: str) -> dict[str, str]:
        found = self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], **ALL_CONFIGS)
        if isinstance(found, dict):
            (by_name,) = next(iter(found.values())).values()
            return {name: each["value"] for name, each in by_name.items()}
        (answer,) = found
        (resource,) = answer.resources
        return {each[0]: each[1] for each in resource[4]}

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])

    def groups(self) -> list[str]:
        if VERSION >= (3, 0):
            return sorted(each["group_id"] for each in self._admin.list_groups())
        return sorted(group for group, _ in self._admin.list_consumer_groups())

    def group(self, name: str) -> dict[str, Any]:
        if VERSION >= (3, 0):
            (found,) = self._admin.describe_groups([name]).values()
            return {"state": found["group_state"], "members": len(found["members"])}
        (described,) = self._admin.describe_consumer_groups([name])
        return {"state": described.state, "members": len(described.members)}

    def delete_group(self, name: str) -> None:
        if VERSION >= (3, 0):
            self._admin.delete_groups([name])
            return
        for _, error in self._admin.delete_consumer_groups([name]):
            if error.errno:
                raise error

    def delete_records(self, topic: str, partition: int, offset: int) -> None:
        if VERSION < (2, 2):
            raise Cannot("no delete_records")
        self._admin.delete_records({TopicPartition(topic, partition): offset})


if __name__ == "__main__":
    serve(KafkaPython(sys.argv[1]))
