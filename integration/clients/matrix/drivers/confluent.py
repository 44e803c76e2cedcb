"""A driver of confluent-kafka, from 2.6 to 2.16."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from integration.clients.matrix.drivers.lines import POLL_S, Cannot, Polling, data, serve, text

ASSIGNORS = {"range", "roundrobin", "cooperative-sticky"}
TIMEOUT_S = 20
AT_ONCE = 500
"""So many records are polled before the application does anything else."""


def pairs(partitions: Any) -> list[list[Any]]:
    return sorted([partition.topic, partition.partition] for partition in partitions)


def partitions_of(found: list[list[Any]]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, number in found]


def results(futures: dict[Any, Any]) -> list[Any]:
    """The results of an administrator's call, in the order of its arguments. Raises the first failure."""
    return [future.result(TIMEOUT_S) for future in futures.values()]


def record_of(message: Any) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "key": text(message.key()),
        "value": text(message.value()),
        "headers": [[name, text(value)] for name, value in message.headers() or ()],
        "timestamp": message.timestamp()[1],
    }


class Reader:
    """Polls a consumer, and notes where it has reached the end of a partition."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], int] = {}
        self._changed = threading.Condition()

    def poll(self, consumer: Consumer) -> list[dict[str, Any]]:
        found = []
        message = consumer.poll(POLL_S)
        while message is not None:
            error = message.error()
            if error is None:
                found.append(record_of(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                with self._changed:
                    self._ends[message.topic(), message.partition()] = message.offset()
                    self._changed.notify_all()
            # The listener has been told; the next poll joins the group again.
            elif error.code() != KafkaError._MAX_POLL_EXCEEDED:
                raise KafkaException(error)
            message = consumer.poll(0) if len(found) < AT_ONCE else None
        return found

    def forget_end(self, topic: str, partition: int) -> None:
        with self._changed:
            self._ends.pop((topic, partition), None)

    def wait_for_end(self, topic: str, partition: int) -> int:
        """The end's offset, once it is reached."""
        with self._changed:
            if not self._changed.wait_for(lambda: (topic, partition) in self._ends, TIMEOUT_S):
                raise TimeoutError(f"the end of {topic}-{partition} was not reached")
            return self._ends[topic, partition]


class Confluent:
    """The calls."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._consumers: dict[str, Polling] = {}
        self._readers: dict[str, Reader] = {}
        self._admin_client: Any = None

    def hello(self) -> list[str]:
        return ["confluent-kafka", confluent_kafka.__version__]

    # ---- records

    def produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: int = -1,
        compression: str = "none",
        idempotent: bool = False,
    ) -> list[list[int]]:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "acks": acks,
                "compression.type": compression,
                "enable.idempotence": idempotent,
            }
        )
        return self._sent(producer, [(topic, record) for record in records])

    def _sent(self, producer: Producer, records: list[tuple[str, dict[str, Any]]]) -> list[list[int]]:
        found: list[list[int] | None] = [None] * len(records)
        errors: list[KafkaError] = []

        def delivered(index: int) -> Callable[[Any, Any], None]:
            def told(error: KafkaError | None, message: Any) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    found[index] = [message.partition(), -1 if offset is None else offset]

            return told

        for index, (topic, record) in enumerate(records):
            options = {
                name: record[name] for name in ("partition", "timestamp") if record.get(name) is not None
            }
            producer.produce(
                topic,
                value=data(record["value"]),
                key=data(record.get("key")),
                headers=[(name, data(value)) for name, value in record.get("headers", ())],
                on_delivery=delivered(index),
                **options,
            )
        producer.flush(TIMEOUT_S)
        if errors:
            raise KafkaException(errors[0])
        delivered_all = [each for each in found if each is not None]
        if len(delivered_all) < len(found):
            raise TimeoutError("not all records were delivered")
        return delivered_all

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
        unknown = set(assignors or ()) - ASSIGNORS
        if unknown:
            raise Cannot(f"no assignor {', '.join(unknown)}")
        settings: dict[str, Any] = {
            "bootstrap.servers": self._bootstrap,
            # The client consumes only in a group.
            "group.id": f"alone-{uuid.uuid4()}" if group is None else group,
            "auto.offset.reset": reset,
            "enable.auto.commit": auto_commit,
            "enable.partition.eof": True,
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": session_timeout_ms // 4,
            "max.poll.interval.ms": max_poll_interval_ms,
            "topic.metadata.refresh.interval.ms": 500,
            "partition.assignment.strategy": ",".join(assignors or ["range"]),
            "isolation.level": isolation,
        }
        if instance is not None:
            settings["group.instance.id"] = instance

        def make(polling: Polling) -> Consumer:
            consumer = Consumer(settings)
            if partitions is not None:
                consumer.assign(partitions_of(partitions))
            else:
                consumer.subscribe(
                    topics if pattern is None else [pattern],
                    on_assign=lambda _, found: polling.event("assigned", pairs(found)),
                    on_revoke=lambda _, found: polling.event("revoked", pairs(found)),
                    on_lost=lambda _, found: polling.event("lost", pairs(found)),
                )
            return consumer

        self._readers[name] = Reader()
        self._consumers[name] = Polling(make, self._readers[name].poll)

    def take(self, name: str, count: int, timeout_ms: int) -> list[dict[str, Any]]:
        return self._consumers[name].take(count, timeout_ms)

    def events(self, name: str) -> list[list[Any]]:
        return self._consumers[name].events()

    def assignment(self, name: str) -> list[list[Any]]:
        return pairs(self._consumers[name].call(lambda consumer: consumer.assignment()))

    def commit(self, name: str, offsets: list[list[Any]] | None = None, wait: bool = True) -> None:
        named = {} if offsets is None else {"offsets": [TopicPartition(*each) for each in offsets]}

        def commit(consumer: Consumer) -> None:
            try:
                for each in consumer.commit(asynchronous=not wait, **named) or ():
                    if each.error is not None:
                        raise KafkaException(each.error)
            except KafkaException as error:
                # All is committed already.
                if offsets is not None or error.args[0].code() != KafkaError._NO_OFFSET:
                    raise

        self._consumers[name].call(commit)

    def committed(self, name: str, partitions: list[list[Any]]) -> list[list[Any] | None]:
        found = self._consumers[name].call(
            lambda consumer: consumer.committed(partitions_of(partitions), timeout=TIMEOUT_S)
        )
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return [None if each.offset < 0 else [each.offset, each.metadata or ""] for each in found]

    def position(self, name: str, topic: str, partition: int) -> int:
        """The client knows none before the first record: then it is the end, once that is reached."""
        where = [TopicPartition(topic, partition)]
        (found,) = self._consumers[name].call(lambda consumer: consumer.position(where))
        if found.error is not None:
            raise KafkaException(found.error)
        if found.offset < 0:
            return self._readers[name].wait_for_end(topic, partition)
        return int(found.offset)

    def seek(self, name: str, topic: str, partition: int, offset: int | str) -> None:
        number = {"beginning": OFFSET_BEGINNING, "end": OFFSET_END}.get(str(offset), offset)
        reader = self._readers[name]

        def seek(consumer: Consumer) -> None:
            reader.forget_end(topic, partition)
            consumer.seek(TopicPartition(topic, partition, number))

        self._consumers[name].call(seek)
        if number == OFFSET_END:  # The client asks for the end only afterwards.
            reader.wait_for_end(topic, partition)

    def seek_to_time(self, name: str, topic: str, partition: int, timestamp_ms: int) -> None:
        def seek(consumer: Consumer) -> None:
            times = [TopicPartition(topic, partition, timestamp_ms)]
            (found,) = consumer.offsets_for_times(times, timeout=TIMEOUT_S)
            if found.error is not None:
                raise KafkaException(found.error)
            consumer.seek(found)

        self._consumers[name].call(seek)

    def pause(self, name: str, partitions: list[list[Any]]) -> None:
        self._consumers[name].call(lambda consumer: consumer.pause(partitions_of(partitions)))

    def resume(self, name: str, partitions: list[list[Any]]) -> None:
        self._consumers[name].call(lambda consumer: consumer.resume(partitions_of(partitions)))

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
        producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": id})
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        self._sent(producer, [(topic, record) for topic, record in records])
        if offsets:
            consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
            try:
                named = [TopicPartition(topic, number, offset) for topic, number, offset, _ in offsets]
                metadata = consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction(named, metadata, TIMEOUT_S)
            finally:
                consumer.close()
        if end == "commit":
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)

    # ---- admin

    @property
    def _admin(self) -> AdminClient:
        if self._admin_client is None:
            self._admin_client = AdminClient({"bootstrap.servers": self._bootstrap})
        return self._admin_client

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        results(self._admin.create_topics([NewTopic(topic, partitions, 1, config=configs or {})]))

    def delete_topic(self, topic: str) -> None:
        results(self._admin.delete_topics([topic]))

    def grow_topic(self, topic: str, partitions: int) -> None:
        results(self._admin.create_partitions([NewPartitions(topic, partitions)]))

    def topics(self) -> list[str]:
        return sorted(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def ends(self, topic: str) -> list[list[int]]:
        (described,) = results(self._admin.describe_topics(TopicCollection([topic])))
        found = [TopicPartition(topic, number) for number in sorted(each.id for each in described.partitions)]
        first, end = self._offsets(found, OffsetSpec.earliest()), self._offsets(found, OffsetSpec.latest())
        return [[start.offset, stop.offset] for start, stop in zip(first, end, strict=True)]

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> list[Any]:
        """Asks again until a new partition has its leader, as other clients do inside."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return results(self._admin.list_offsets(dict.fromkeys(partitions, spec)))
            except KafkaException as error:
                not_yet = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
                if not not_yet or time.monotonic() > deadline:
                    raise
                time.sleep(POLL_S)

    def configs(self, topic: str) -> dict[str, str]:
        (found,) = results(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: each.value for name, each in found.items()}

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        results(self._admin.incremental_alter_configs([resource]))

    def groups(self) -> list[str]:
        found = self._admin.list_consumer_groups().result(TIMEOUT_S)
        if found.errors:
            raise found.errors[0]
        return sorted(each.group_id for each in found.valid)

    def group(self, name: str) -> dict[str, Any]:
        (found,) = results(self._admin.describe_consumer_groups([name]))
        state = found.state.name.title().replace("_", "").replace("Rebalancing", "Rebalance")
        return {"state": state, "members": len(found.members)}

    def delete_group(self, name: str) -> None:
        results(self._admin.delete_consumer_groups([name]))

    def delete_records(self, topic: str, partition: int, offset: int) -> None:
        results(self._admin.delete_records([TopicPartition(topic, partition, offset)]))


if __name__ == "__main__":
    serve(Confluent(sys.argv[1]))
