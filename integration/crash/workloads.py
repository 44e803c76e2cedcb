"""What clients do while the server is killed, each in a thread of its own; and what was promised to them."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from integration.clients import RECONNECT, new_consumer, new_producer, offset_and_metadata

PARTITIONS = 3
MAX_UNACKNOWLEDGED = 200
BURST, PAUSE_S = 10, 0.005
"""Some thousand records a second: a record more is no other story."""
POLL_MS = 500
EAGER = {**RECONNECT, "reconnect_backoff_max_ms": 200, "request_timeout_ms": 10_000}


def abandon(producer: KafkaProducer) -> None:
    """Let go of a producer whose transaction is in doubt; it minds what it has not sent."""
    with contextlib.suppress(KafkaError):
        producer.close(timeout=0)


class Workload:
    """A thread that works until stop(). `done` grows with all that was acknowledged."""

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
            raise AssertionError(f"{self.topic}: the client does not come to its end")
        if self.failure is not None:
            raise AssertionError(f"{self.topic}: the client failed: {self.failure!r}") from self.failure

    def _run_to_end(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.failure = error

    def run(self) -> None:
        raise NotImplementedError

    def new_transactional_producer(self) -> KafkaProducer:
        """Once it has a producer id, all that its predecessor has left open has ended."""
        while True:
            producer = new_producer(
                self.bootstrap,
                transactional_id=f"{self.topic}-id",
                transaction_timeout_ms=20_000,
                max_block_ms=20_000,
                **EAGER,
            )
            try:
                producer.init_transactions()
            except KafkaError:
                abandon(producer)
                if self._stopping.wait(0.1):
                    raise
            else:
                return producer


class Producing(Workload):
    """Numbered records, one after the other.

    acknowledged: (partition, offset) -> number.
    """

    def __init__(self, bootstrap: str, topic: str, *, idempotent: bool) -> None:
        super().__init__(bootstrap, topic)
        self.acknowledged: dict[tuple[int, int], int] = {}
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
    """A member of a group that reads a topic and commits after each poll.

    acknowledged: partition -> the highest offset whose commit was acknowledged.
    """

    def __init__(self, bootstrap: str, topic: str, group_id: str) -> None:
        super().__init__(bootstrap, topic)
        self.group_id = group_id
        self.acknowledged: dict[int, int] = {}

    def run(self) -> None:
        consumer = new_consumer(
            self.bootstrap,
            self.topic,
            group_id=self.group_id,
            max_poll_records=200,
            session_timeout_ms=20_000,
            heartbeat_interval_ms=1000,
            **EAGER,
        )
        while not self._stopping.is_set():
            try:
                offsets = {
                    tp.partition: records[-1].offset + 1
                    for tp, records in consumer.poll(timeout_ms=POLL_MS).items()
                    if records
                }
                if offsets:
                    self._commit(consumer, offsets)
            except KafkaError:  # the server is away, or a rebalance came in between
                self._stopping.wait(0.05)
        consumer.close()

    def _commit(self, consumer: Any, offsets: dict[int, int]) -> None:
        consumer.commit({TopicPartition(self.topic, p): offset_and_metadata(o) for p, o in offsets.items()})
        for partition, offset in offsets.items():
            self.acknowledged[partition] = max(offset, self.acknowledged.get(partition, 0))
            self.done += 1


class Transacting(Workload):
    """Transactions of some records over all partitions, of which every third is aborted.

    outcome: number of the transaction -> "committed", "aborted", or "unknown" where the server was killed
    before it could say. sizes: how many records each had.
    """

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        super().__init__(bootstrap, topic)
        self.outcome: dict[int, str] = {}
        self.sizes: dict[int, int] = {}
        self._random = random.Random(seed)

    def run(self) -> None:
        producer: KafkaProducer | None = None
        for number in itertools.count():
            if self._stopping.is_set():
                break
            producer = producer or self.new_transactional_producer()
            try:
                self._transaction(producer, number)
            except KafkaError:
                abandon(producer)
                producer = None
        if producer is not None:
            producer.close(timeout=10)

    def _transaction(self, producer: KafkaProducer, number: int) -> None:
        size = self.sizes[number] = self._random.randint(1, 12)
        self.outcome[number] = "unknown"
        commits = number % 3 != 2
        producer.begin_transaction()
        sent = [
            producer.send(self.topic, f"{number}-{part}".encode(), partition=part % PARTITIONS)
            for part in range(size)
        ]
        if not commits:
            self.outcome[number] = "aborted"
            producer.abort_transaction()
        else:
            for future in sent:
                future.get(timeout=30)
            producer.commit_transaction()
            self.outcome[number] = "committed"
        self.done += 1


class Copying(Workload):
    """A job that copies a topic exactly once: the records and the offsets up to which they were read, in one
    transaction.
    """

    def __init__(self, bootstrap: str, source: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.source = source
        self.group_id = f"{topic}-job"

    def run(self) -> None:
        while not self._stopping.is_set():
            producer = self.new_transactional_producer()
            consumer = self._new_consumer()
            try:
                while not self._stopping.is_set():
                    self._copy(producer, consumer)
            except KafkaError:  # what was under way is aborted; the next one begins at what was committed
                self._stopping.wait(0.05)
            finally:
                consumer.close(autocommit=False)
                abandon(producer)

    def _new_consumer(self) -> Any:
        options = {"isolation_level": "read_committed", "max_poll_records": 300, **EAGER}
        consumer = new_consumer(self.bootstrap, group_id=self.group_id, **options)
        consumer.assign([TopicPartition(self.source, partition) for partition in range(PARTITIONS)])
        return consumer

    def _copy(self, producer: KafkaProducer, consumer: Any) -> None:
        polled = consumer.poll(timeout_ms=POLL_MS)
        if not polled:
            return
        producer.begin_transaction()
        for tp, records in polled.items():
            for record in records:
                producer.send(self.topic, record.value, partition=tp.partition)
        offsets = {tp: offset_and_metadata(records[-1].offset + 1) for tp, records in polled.items()}
        producer.send_offsets_to_transaction(offsets, self.group_id)
        producer.commit_transaction()
        self.done += 1
