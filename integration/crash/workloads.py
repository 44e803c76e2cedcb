"""Clients that work while the server is killed, each in its own thread, and their acknowledged work."""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from integration.support.clients import RECONNECT, new_producer

PARTITIONS = 3
MAX_UNACKNOWLEDGED = 200
BURST, PAUSE_S = 10, 0.005
"""Some thousand records a second: more would tell nothing new."""
MAX_POLL_RECORDS = 200
POLL_S = 0.5
EAGER = {**RECONNECT, "reconnect_backoff_max_ms": 200, "request_timeout_ms": 10_000}
LIBRDKAFKA = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 200,
    # 2.16 sends a group's offsets to a broker that it has given up, if it has bootstrapped again meanwhile
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}
CLASSIC = {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 1000}
"""Settings that only members of the classic protocol may have."""
TIMEOUT_S = 30


class Workload:
    """A thread that works until stop(). `done` counts what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.done = 0
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run_to_end, name=topic, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(120)
        if self._thread.is_alive():
            raise AssertionError(f"{self.topic}: the client does not end")
        if self.failure is not None:
            raise AssertionError(f"{self.topic}: the client failed: {self.failure!r}") from self.failure

    def _run_to_end(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.failure = error

    def run(self) -> None:
        raise NotImplementedError


class Producing(Workload):
    """Sends numbered records, one after the other."""

    def __init__(self, bootstrap: str, topic: str, *, idempotent: bool) -> None:
        super().__init__(bootstrap, topic)
        self.acknowledged: dict[tuple[int, int], int] = {}
        """(partition, offset) -> number."""
        self.sent = 0
        self._idempotent = idempotent
        self._room = threading.Semaphore(MAX_UNACKNOWLEDGED)

    def run(self) -> None:
        options = {"enable_idempotence": self._idempotent, "linger_ms": 2, "delivery_timeout_ms": 110_000}
        producer = new_producer(self.bootstrap, **{**EAGER, **options})
        for number in itertools.count():
            while not self._room.acquire(timeout=0.5):
                if self.failure is not None:
                    return
            if self._stopping.is_set():
                break
            if number % BURST == 0:
                self._stopping.wait(PAUSE_S)
            value = f"{self.topic}-{number}".encode()
            future = producer.send(self.topic, value, partition=number % PARTITIONS)
            future.add_callback(self._on_acknowledged, number)
            future.add_errback(self._on_refused)
            self.sent = number + 1
        producer.flush(timeout=100)
        producer.close(timeout=10)

    def _on_acknowledged(self, number: int, metadata: Any) -> None:
        self.acknowledged[metadata.partition, metadata.offset] = number
        self.done += 1
        self._room.release()

    def _on_refused(self, error: BaseException) -> None:
        self.failure = error


class Committing(Workload):
    """A member of a group that reads a topic and commits after each poll, with librdkafka: kafka-python
    3.0.12 may stop after a rebalance.
    """

    def __init__(self, bootstrap: str, topic: str, group_id: str, protocol: str = "classic") -> None:
        """protocol: "classic" or "consumer"."""
        super().__init__(bootstrap, topic)
        self.group_id = group_id
        self._protocol = protocol
        self.acknowledged: dict[int, int] = {}
        """partition -> the highest offset whose commit was acknowledged."""

    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "group.protocol": self._protocol,
                **(CLASSIC if self._protocol == "classic" else {}),
                **LIBRDKAFKA,
            }
        )
        consumer.subscribe([self.topic])
        while not self._stopping.is_set():
            try:
                messages = consumer.consume(MAX_POLL_RECORDS, POLL_S)
                offsets = {m.partition(): m.offset() + 1 for m in messages if m.error() is None}
                if offsets:
                    self._commit(consumer, offsets)
            except KafkaException:  # the server is down, or a rebalance intervened
                self._stopping.wait(0.05)
        consumer.close()

    def _commit(self, consumer: Consumer, offsets: dict[int, int]) -> None:
        positions = [Position(self.topic, partition, offset) for partition, offset in offsets.items()]
        for position in consumer.commit(offsets=positions, asynchronous=False):
            if position.error is not None:
                raise KafkaException(position.error)
            known = self.acknowledged.get(position.partition, 0)
            self.acknowledged[position.partition] = max(position.offset, known)
            self.done += 1


class TransactionalWorkload(Workload):
    """Makes one `attempt` after another, with librdkafka: kafka-python 3.0.12's transactional producer may
    deadlock.

    If an attempt leaves its transaction in doubt, a new producer takes over, which ends the open transaction.
    """

    def run(self) -> None:
        producer: Producer | None = None
        while not self._stopping.is_set():
            try:
                if producer is None:
                    producer = self._new_producer()
                self.attempt(producer)
            except KafkaException:
                producer = None
                self.reset()
                self._stopping.wait(0.05)

    def attempt(self, producer: Producer) -> None:
        """One transaction. Raises KafkaException if its outcome is in doubt."""
        raise NotImplementedError

    def reset(self) -> None:
        """The current transaction was aborted, or its outcome is unknown."""

    def _new_producer(self) -> Producer:
        options = {"transactional.id": f"{self.topic}-id", "transaction.timeout.ms": 20_000, "linger.ms": 2}
        producer = Producer({"bootstrap.servers": self.bootstrap, **LIBRDKAFKA, **options})
        producer.init_transactions(TIMEOUT_S)
        return producer


def commit(producer: Producer) -> bool:
    """True if the transaction was committed, False if aborted. Raises KafkaException if that is in doubt."""
    while True:
        try:
            producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(TIMEOUT_S)
                return False
            if not error.args[0].retriable():
                raise
        else:
            return True


class Transacting(TransactionalWorkload):
    """Transactions of some records over all partitions; every third is aborted."""

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        super().__init__(bootstrap, topic)
        self.outcome: dict[int, str] = {}
        """Transaction number -> "committed", "aborted", or "unknown" if the server was killed before it
        answered."""
        self.sizes: dict[int, int] = {}
        """Transaction number -> its number of records."""
        self._random = random.Random(seed)

    def attempt(self, producer: Producer) -> None:
        number = len(self.sizes)
        size = self.sizes[number] = self._random.randint(1, 12)
        self.outcome[number] = "unknown"
        producer.begin_transaction()
        for part in range(size):
            producer.produce(self.topic, f"{number}-{part}".encode(), partition=part % PARTITIONS)
        if number % 3 == 2:
            self.outcome[number] = "aborted"
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)
        else:
            self.outcome[number] = "committed" if commit(producer) else "aborted"
        self.done += 1


class Copying(TransactionalWorkload):
    """Copies a topic exactly once: each transaction has the records and the offsets up to which they were
    read."""

    def __init__(self, bootstrap: str, source: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.source = source
        self.group_id = f"{topic}-job"
        self._consumer: Consumer | None = None

    def attempt(self, producer: Producer) -> None:
        consumer = self._consumer = self._consumer or self._new_consumer()
        messages = [message for message in consumer.consume(300, 0.5) if message.error() is None]
        if not messages:
            return
        producer.begin_transaction()
        for message in messages:
            producer.produce(self.topic, message.value(), partition=message.partition())
        positions = [tp for tp in consumer.position(consumer.assignment()) if tp.offset >= 0]
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TIMEOUT_S)
        if commit(producer):
            self.done += 1
        else:
            self.reset()

    def reset(self) -> None:
        """Continue from the committed offsets."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _new_consumer(self) -> Consumer:
        options = {"group.id": self.group_id, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, **LIBRDKAFKA, **options})
        consumer.assign([Position(self.source, partition) for partition in range(PARTITIONS)])
        return consumer
