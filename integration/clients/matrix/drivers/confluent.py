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

from integration.clients.matrix.drivers.consumers import Consumers, Options, pairs
from integration.clients.matrix.drivers.lines import POLL_S, Polling, data, serve, text
from integration.clients.matrix.drivers.secured import of_librdkafka

ASSIGNORS = {
    "classic": {"range", "roundrobin", "cooperative-sticky"},
    "consumer": {"range", "uniform"},
}
"""By group.protocol."""
TIMEOUT_S = 20
AT_ONCE = 500
"""So many records are polled before the application does anything else."""


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


def commit(consumer: Consumer, wait: bool = True, **named: Any) -> None:
    """Commit what was polled, or the offsets named."""
    try:
        for each in consumer.commit(asynchronous=not wait, **named) or ():
            if each.error is not None:
                raise KafkaException(each.error)
    except KafkaException as error:
        # All is committed already.
        if named or error.args[0].code() != KafkaError._NO_OFFSET:
            raise


class Reader:
    """Polls a consumer, and notes where it has reached the end of a partition."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], int] = {}
        self._changed = threading.Condition()
        self._error: KafkaError | None = None  # which came behind records

    def poll(self, consumer: Consumer) -> list[dict[str, Any]]:
        error, self._error = self._error, None
        if error is not None:
            raise KafkaException(error)
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
                if not found:
                    raise KafkaException(error)
                self._error = error
                return found
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


class Confluent(Consumers):
    """The calls."""

    partition_type = TopicPartition

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._bootstrap = bootstrap
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
                **of_librdkafka(),
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

    def open(self, name: str, **asked: Any) -> None:
        options = Options(**asked)
        options.need(ASSIGNORS[options.protocol])

        def make(polling: Polling) -> Consumer:
            consumer = Consumer(self._settings(options))
            if options.partitions is not None:
                consumer.assign(self._partitions(options.partitions))
                return consumer

            def revoked(consumer: Consumer, found: list[TopicPartition]) -> None:
                if options.commit_on_revoke:
                    commit(consumer)
                polling.event("revoked", pairs(found))

            consumer.subscribe(
                options.topics if options.pattern is None else [options.pattern],
                on_assign=lambda _, found: polling.event("assigned", pairs(found)),
                on_revoke=revoked,
                on_lost=lambda _, found: polling.event("lost", pairs(found)),
            )
            return consumer

        self._readers[name] = Reader()
        self._consumers[name] = Polling(make, self._readers[name].poll)

    def _settings(self, options: Options) -> dict[str, Any]:
        settings: dict[str, Any] = {
            **of_librdkafka(),
            "bootstrap.servers": self._bootstrap,
            # The client consumes only in a group.
            "group.id": f"alone-{uuid.uuid4()}" if options.group is None else options.group,
            "auto.offset.reset": options.reset,
            "enable.auto.commit": options.auto_commit,
            "enable.partition.eof": True,
            "max.poll.interval.ms": options.max_poll_interval_ms,
            "topic.metadata.refresh.interval.ms": 500,
            "isolation.level": options.isolation,
        }
        if options.protocol == "consumer":
            settings["group.protocol"] = options.protocol
            settings["group.remote.assignor"] = options.assignors[0]
        else:
            settings["session.timeout.ms"] = options.session_timeout_ms
            settings["heartbeat.interval.ms"] = options.heartbeat_interval_ms
            settings["partition.assignment.strategy"] = ",".join(options.assignors)
        if options.instance is not None:
            settings["group.instance.id"] = options.instance
        if options.request_timeout_ms is not None:
            settings["socket.timeout.ms"] = options.request_timeout_ms
        return settings

    def commit(self, name: str, offsets: list[list[Any]] | None = None, wait: bool = True) -> None:
        named = {} if offsets is None else {"offsets": [TopicPartition(*each) for each in offsets]}
        self._call(name, lambda consumer: commit(consumer, wait=wait, **named))

    def committed(self, name: str, partitions: list[list[Any]]) -> list[list[Any] | None]:
        found = self._call(
            name, lambda consumer: consumer.committed(self._partitions(partitions), timeout=TIMEOUT_S)
        )
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return [None if each.offset < 0 else [each.offset, each.metadata or ""] for each in found]

    def position(self, name: str, topic: str, partition: int) -> int:
        """The client knows none before the first record: then it is the end, once that is reached."""
        where = [TopicPartition(topic, partition)]
        (found,) = self._call(name, lambda consumer: consumer.position(where))
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

        self._call(name, seek)
        if number == OFFSET_END:  # The client asks for the end only afterwards.
            reader.wait_for_end(topic, partition)

    def seek_to_time(self, name: str, topic: str, partition: int, timestamp_ms: int) -> None:
        def seek(consumer: Consumer) -> None:
            times = [TopicPartition(topic, partition, timestamp_ms)]
            (found,) = consumer.offsets_for_times(times, timeout=TIMEOUT_S)
            if found.error is not None:
                raise KafkaException(found.error)
            consumer.seek(found)

        self._call(name, seek)

    def pause(self, name: str, partitions: list[list[Any]]) -> None:
        self._call(name, lambda consumer: consumer.pause(self._partitions(partitions)))

    def resume(self, name: str, partitions: list[list[Any]]) -> None:
        self._call(name, lambda consumer: consumer.resume(self._partitions(partitions)))

    # ---- transactions

    def transact(
        self,
        id: str,
        records: list[list[Any]],
        end: str,
        group: str | None = None,
        offsets: list[list[Any]] | None = None,
    ) -> None:
        producer = Producer({**of_librdkafka(), "bootstrap.servers": self._bootstrap, "transactional.id": id})
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        self._sent(producer, [(topic, record) for topic, record in records])
        if offsets:
            consumer = Consumer({**of_librdkafka(), "bootstrap.servers": self._bootstrap, "group.id": group})
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
            self._admin_client = AdminClient({**of_librdkafka(), "bootstrap.servers": self._bootstrap})
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
