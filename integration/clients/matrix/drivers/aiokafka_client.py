"""A driver of aiokafka, from 0.12."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import for_code

from integration.clients.matrix.drivers.consumers import LikeKafkaPython, Options, pairs, records_of
from integration.clients.matrix.drivers.lines import CALL_S, Cannot, Polling, data, serve

ASSIGNORS: dict[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
POLL_MS = 50


def check(codes: Iterable[int]) -> None:
    """Raise the first error: the administrator's calls return most errors instead of raising them."""
    for code in codes:
        if code:
            raise for_code(code)


class Loop:
    """An event loop on a thread of its own. Clients live on it; calls from other threads wait for it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_S)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(*arguments)`, awaited if it must be."""

        async def called() -> Any:
            found = function(*arguments)
            return await found if inspect.isawaitable(found) else found

        return self.run(called())


class Listener(ConsumerRebalanceListener):
    """Tells of the partitions, and commits before some are given up if it is to."""

    def __init__(self, polling: Polling, consumer: AIOKafkaConsumer, commits: bool) -> None:
        self._polling, self._consumer, self._commits = polling, consumer, commits

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._polling.event("assigned", pairs(assigned))

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if self._commits and revoked:
            await self._consumer.commit()
        self._polling.event("revoked", pairs(revoked))


class Aiokafka(LikeKafkaPython):
    """The calls."""

    partition_type = TopicPartition

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._bootstrap = bootstrap
        self._loop = Loop()
        self._groups: dict[str, str | None] = {}
        self._commits: set[asyncio.Task[None]] = set()
        self._admin_client: Any = None

    def hello(self) -> list[str]:
        return ["aiokafka", aiokafka.__version__]

    # ---- records

    def produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: int = -1,
        compression: str = "none",
        idempotent: bool = False,
    ) -> list[list[int]]:
        async def produce() -> list[list[int]]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks="all" if acks == -1 else acks,
                compression_type=None if compression == "none" else compression,
                enable_idempotence=idempotent,
            )
            async with producer:
                return await self._sent(producer, [(topic, record) for record in records])

        found: list[list[int]] = self._loop.run(produce())
        return found

    async def _sent(
        self, producer: AIOKafkaProducer, records: list[tuple[str, dict[str, Any]]]
    ) -> list[list[int]]:
        futures = [await self._send(producer, topic, record) for topic, record in records]
        found = await asyncio.gather(*futures)
        return [
            [record.get("partition", -1), -1] if each is None else [each.partition, each.offset]
            for (_, record), each in zip(records, found, strict=True)
        ]

    async def _send(self, producer: AIOKafkaProducer, topic: str, record: dict[str, Any]) -> Any:
        key, value, partition = data(record.get("key")), data(record["value"]), record.get("partition")
        headers = [(name, data(each)) for name, each in record.get("headers", ())]
        if key is None and value is None:  # `send` refuses such a record; a batch takes it.
            batch = producer.create_batch()
            batch.append(key=None, value=None, timestamp=record.get("timestamp"), headers=headers)
            return await producer.send_batch(batch, topic, partition=partition)
        return await producer.send(
            topic, value, key, partition, timestamp_ms=record.get("timestamp"), headers=headers
        )

    # ---- consumers

    def open(self, name: str, **asked: Any) -> None:
        options = Options(**asked)
        options.need(ASSIGNORS)
        self._groups[name] = options.group
        self._consumers[name] = Polling(
            lambda polling: self._loop.run(self._start(options, polling)), self._poll
        )

    async def _start(self, options: Options, polling: Polling) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=options.group,
            group_instance_id=options.instance,
            auto_offset_reset=options.reset,
            enable_auto_commit=options.auto_commit,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            max_poll_interval_ms=options.max_poll_interval_ms,
            metadata_max_age_ms=500,
            partition_assignment_strategy=[ASSIGNORS[each] for each in options.assignors],
            isolation_level=options.isolation,
        )
        if options.partitions is not None:
            consumer.assign(self._partitions(options.partitions))
        else:
            listener = Listener(polling, consumer, options.commit_on_revoke)
            consumer.subscribe(topics=options.topics, pattern=options.pattern, listener=listener)
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        return consumer

    def _poll(self, consumer: AIOKafkaConsumer) -> list[dict[str, Any]]:
        return records_of(self._loop.run(consumer.getmany(timeout_ms=POLL_MS)))

    def _call(self, name: str, function: Callable[[Any], Any]) -> Any:
        """`function(consumer)` on the loop, between two polls."""
        return self._consumers[name].call(lambda consumer: self._loop.call(function, consumer))

    def commit(self, name: str, offsets: list[list[Any]] | None = None, wait: bool = True) -> None:
        named = None
        if offsets is not None:
            named = {
                TopicPartition(topic, number): (offset, metadata)
                for topic, number, offset, metadata in offsets
            }

        def begin(consumer: AIOKafkaConsumer) -> None:
            task = asyncio.ensure_future(consumer.commit(named))
            self._commits.add(task)
            task.add_done_callback(self._commits.discard)

        self._call(name, (lambda consumer: consumer.commit(named)) if wait else begin)

    def committed(self, name: str, partitions: list[list[Any]]) -> list[list[Any] | None]:
        """A consumer knows only the offsets; the administrator knows the metadata too."""
        found = self._partitions(partitions)
        offsets = [self._call(name, lambda consumer, each=each: consumer.committed(each)) for each in found]
        known = self._loop.run(self._admin.list_consumer_group_offsets(self._groups[name], partitions=found))
        return [
            None if offset is None else [offset, known[each].metadata]
            for each, offset in zip(found, offsets, strict=True)
        ]

    def seek_to_time(self, name: str, topic: str, partition: int, timestamp_ms: int) -> None:
        where = TopicPartition(topic, partition)

        async def seek(consumer: AIOKafkaConsumer) -> None:
            found = (await consumer.offsets_for_times({where: timestamp_ms}))[where]
            if found is None:
                await consumer.seek_to_end(where)
            else:
                consumer.seek(where, found.offset)

        self._call(name, seek)

    def close(self, name: str) -> None:
        self._consumers.pop(name).close(lambda consumer: self._loop.run(consumer.stop()))

    # ---- transactions

    def transact(
        self,
        id: str,
        records: list[list[Any]],
        end: str,
        group: str | None = None,
        offsets: list[list[Any]] | None = None,
    ) -> None:
        async def transact() -> None:
            producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, transactional_id=id)
            async with producer:
                await producer.begin_transaction()
                await self._sent(producer, [(topic, record) for topic, record in records])
                if offsets:
                    named = {TopicPartition(topic, number): offset for topic, number, offset, _ in offsets}
                    await producer.send_offsets_to_transaction(named, group)
                await getattr(producer, f"{end}_transaction")()

        self._loop.run(transact())

    # ---- admin

    @property
    def _admin(self) -> AIOKafkaAdminClient:
        async def start() -> AIOKafkaAdminClient:
            client = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await client.start()
            return client

        if self._admin_client is None:
            self._admin_client = self._loop.run(start())
        return self._admin_client

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=configs or {})
        found = self._loop.run(self._admin.create_topics([new]))
        check(each[1] for each in found.topic_errors)

    def delete_topic(self, topic: str) -> None:
        found = self._loop.run(self._admin.delete_topics([topic]))
        check(each[1] for each in found.topic_error_codes)

    def grow_topic(self, topic: str, partitions: int) -> None:
        self._loop.run(self._admin.create_partitions({topic: NewPartitions(partitions)}))

    def topics(self) -> list[str]:
        return sorted(self._loop.run(self._admin.list_topics()))

    def ends(self, topic: str) -> list[list[int]]:
        (described,) = self._loop.run(self._admin.describe_topics([topic]))
        check([described["error_code"]])
        found = [TopicPartition(topic, each["partition"]) for each in described["partitions"]]

        async def ends() -> list[list[int]]:
            async with AIOKafkaConsumer(bootstrap_servers=self._bootstrap) as consumer:
                first, end = await consumer.beginning_offsets(found), await consumer.end_offsets(found)
                return [[first[each], end[each]] for each in sorted(found)]

        answer: list[list[int]] = self._loop.run(ends())
        return answer

    def configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._loop.run(self._admin.describe_configs([resource]))
        ((code, _, _, _, entries),) = answer.resources
        check([code])
        return {each[0]: each[1] for each in entries}

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        for answer in self._loop.run(self._admin.alter_configs([resource])):
            check(each[0] for each in answer.resources)

    def groups(self) -> list[str]:
        return sorted(each[0] for each in self._loop.run(self._admin.list_consumer_groups()))

    def group(self, name: str) -> dict[str, Any]:
        (answer,) = self._loop.run(self._admin.describe_consumer_groups([name]))
        ((code, _, state, _, _, members, *_),) = answer.groups
        check([code])
        return {"state": state, "members": len(members)}

    def delete_group(self, name: str) -> None:
        raise Cannot("no call that deletes groups")

    def delete_records(self, topic: str, partition: int, offset: int) -> None:
        self._loop.run(
            self._admin.delete_records({TopicPartition(topic, partition): RecordsToDelete(offset)})
        )


if __name__ == "__main__":
    serve(Aiokafka(sys.argv[1]))
