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

from integration.clients.matrix.drivers.consumers import LikeKafkaPython, Options, pairs, records_of
from integration.clients.matrix.drivers.lines import Cannot, Polling, data, serve
from integration.clients.matrix.drivers.secured import of_kafka_python

VERSION = tuple(int(part) for part in kafka.__version__.split(".")[:2])
ASSIGNORS: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
if VERSION == (2, 0):
    del ASSIGNORS["sticky"]  # it fails in any Python from 3.10 on
TIMEOUT_S = 20
POLL_MS = 500 if VERSION >= (3, 0) else 50
"""Version 3 now and then loses its place in a group, with any broker, if it still joins when a poll ends."""
ALL_CONFIGS = {"config_filter": "all"} if VERSION >= (3, 0) else {}


class Listener(ConsumerRebalanceListener):
    """Tells of the partitions, and commits before some are given up if it is to."""

    def __init__(self, polling: Polling, consumer: KafkaConsumer, commits: bool) -> None:
        self._polling, self._consumer, self._commits = polling, consumer, commits

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._polling.event("assigned", pairs(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        if self._commits and revoked:
            self._consumer.commit()
        self._polling.event("revoked", pairs(revoked))


def poll(consumer: KafkaConsumer) -> list[dict[str, Any]]:
    return records_of(consumer.poll(timeout_ms=POLL_MS))


class KafkaPython(LikeKafkaPython):
    """The calls."""

    partition_type = TopicPartition

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._bootstrap = bootstrap
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
        if acks == 0 and (2, 2) <= VERSION < (3, 0):
            raise Cannot("what is to be sent with acks=0 is never sent, to any broker")
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            **of_kafka_python(),
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

    def open(self, name: str, **asked: Any) -> None:
        options = Options(**asked)
        options.need(ASSIGNORS)
        settings: dict[str, Any] = {"isolation_level": options.isolation} if VERSION >= (2, 1) else {}
        if options.instance is not None:
            if VERSION < (2, 3):
                raise Cannot("no static members")
            settings["group_instance_id"] = options.instance
        if options.request_timeout_ms is not None:
            settings["request_timeout_ms"] = options.request_timeout_ms
        if options.isolation == "read_committed" and VERSION < (2, 1):
            raise Cannot("no isolation level")

        def make(polling: Polling) -> Any:
            consumer = KafkaConsumer(
                bootstrap_servers=self._bootstrap,
                **of_kafka_python(),
                group_id=options.group,
                auto_offset_reset=options.reset,
                enable_auto_commit=options.auto_commit,
                session_timeout_ms=options.session_timeout_ms,
                heartbeat_interval_ms=options.heartbeat_interval_ms,
                max_poll_interval_ms=options.max_poll_interval_ms,
                metadata_max_age_ms=500,
                partition_assignment_strategy=[ASSIGNORS[each] for each in options.assignors],
                **settings,
            )
            if options.partitions is not None:
                consumer.assign(self._partitions(options.partitions))
            else:
                listener = Listener(polling, consumer, options.commit_on_revoke)
                consumer.subscribe(topics=options.topics, pattern=options.pattern, listener=listener)
            return consumer

        self._consumers[name] = Polling(make, poll)

    def commit(self, name: str, offsets: list[list[Any]] | None = None, wait: bool = True) -> None:
        named = None
        if offsets is not None:
            epoch = () if VERSION < (2, 1) else (-1,)
            named = {
                TopicPartition(topic, number): OffsetAndMetadata(offset, metadata, *epoch)
                for topic, number, offset, metadata in offsets
            }
        method = "commit" if wait else "commit_async"
        self._call(name, lambda consumer: getattr(consumer, method)(named) and None)

    def committed(self, name: str, partitions: list[list[Any]]) -> list[list[Any] | None]:
        found = [
            self._call(name, lambda consumer, each=each: consumer.committed(each, metadata=True))
            for each in self._partitions(partitions)
        ]
        return [None if each is None else [each.offset, each.metadata] for each in found]

    def seek(self, name: str, topic: str, partition: int, offset: int | str) -> None:
        super().seek(name, topic, partition, offset)
        if offset == "end":  # the client asks for it only when it needs it
            self.position(name, topic, partition)

    def seek_to_time(self, name: str, topic: str, partition: int, timestamp_ms: int) -> None:
        where = TopicPartition(topic, partition)

        def seek(consumer: Any) -> None:
            found = consumer.offsets_for_times({where: timestamp_ms})[where]
            if found is None:
                consumer.seek_to_end(where)
            else:
                consumer.seek(where, found.offset)

        self._call(name, seek)

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
            self._admin_client = KafkaAdminClient(bootstrap_servers=self._bootstrap, **of_kafka_python())
        return self._admin_client

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def grow_topic(self, topic: str, partitions: int) -> None:
        if VERSION == (2, 2):
            raise Cannot("now and then a member misses partitions that are added, with any broker")
        self._admin.create_partitions({topic: NewPartitions(partitions)})

    def topics(self) -> list[str]:
        return sorted(self._admin.list_topics())

    def ends(self, topic: str) -> list[list[int]]:
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, **of_kafka_python())
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
