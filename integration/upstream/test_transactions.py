"""Offsets in transactions, with one Apache Kafka behind one or two kshim."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from integration.support.awaiting import wait_until
from integration.support.clients import VERSION, Admin, new_consumer, new_producer, offset_and_metadata
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.messages.find_coordinator import FindCoordinatorRequest

if VERSION < (3, 0):
    pytest.skip("the transactional producer of kafka-python is not finished", allow_module_level=True)

PATIENCE_S = 60
UPSTREAM_OPTIONS = ("--set=transaction.abort.timed.out.transaction.cleanup.interval.ms=200",)
FIND = 3


@pytest.fixture
def new_kshim(kafka: Server, tmp_path: Path) -> Iterator[Callable[[], Server]]:
    servers: list[Server] = []

    def new() -> Server:
        directory = tmp_path / f"kshim{len(servers)}"
        servers.append(Server(directory, ["--upstream", kafka.bootstrap]).start())
        return servers[-1]

    yield new
    for server in servers:
        if server.running:
            server.kill()


@pytest.fixture
def kshim(new_kshim: Callable[[], Server]) -> Server:
    return new_kshim()


@pytest.fixture
def made(kafka: Server, topic: str) -> str:
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    admin.create_topic(f"{topic}-copies", 1)
    admin.close()
    return topic


class Transactional:
    """A producer that commits one offset, in a transaction of its own."""

    def __init__(self, bootstrap: str, topic: str, **options: Any) -> None:
        self.topic, self.group_id = topic, f"group-of-{topic}"
        self.producer: KafkaProducer = new_producer(bootstrap, transactional_id=f"id-of-{topic}", **options)
        self.producer.init_transactions()

    def begin(self, offset: int) -> None:
        self.producer.begin_transaction()
        self.producer.send(self.topic, b"%d" % offset)
        partition = TopicPartition(self.topic, 0)
        self.producer.send_offsets_to_transaction({partition: offset_and_metadata(offset)}, self.group_id)

    def commit(self, offset: int) -> None:
        self.begin(offset)
        self.producer.commit_transaction()


def committed(bootstrap: str, topic: str) -> int | None:
    """The committed offsets, as a read_committed consumer of the group gets them."""
    options = {"group_id": f"group-of-{topic}", "isolation_level": "read_committed"}
    consumer = new_consumer(bootstrap, enable_auto_commit=False, **options)
    try:
        found: int | None = consumer.committed(TopicPartition(topic, 0))
        return found
    finally:
        consumer.close()


@pytest.mark.few
def test_offsets_count_when_their_transaction_is_committed(kafka: Server, kshim: Server, made: str) -> None:
    """They are sent to the upstream, as all others are."""
    paul = Transactional(kshim.bootstrap, made)
    paul.commit(5)
    assert committed(kshim.bootstrap, made) == 5
    paul.begin(6)
    paul.producer.abort_transaction()
    assert committed(kshim.bootstrap, made) == 5
    paul.begin(7)
    paul.producer.commit_transaction()
    assert committed(kshim.bootstrap, made) == 7
    wait_until(lambda: committed(kafka.bootstrap, made) == 7, 10, "the upstream is told")
    paul.producer.close()


def test_offsets_outlive_kshim_whether_or_not_their_transaction_has_ended(kshim: Server, made: str) -> None:
    paul = Transactional(kshim.bootstrap, made)
    paul.commit(5)
    paul.begin(6)
    kshim.kill()
    kshim.restart()
    paul.producer.commit_transaction()
    wait_until(lambda: committed(kshim.bootstrap, made) == 6, PATIENCE_S, "the transaction ends here, too")
    paul.begin(7)
    kshim.kill()
    kshim.restart()
    paul.producer.abort_transaction()
    assert committed(kshim.bootstrap, made) == 6
    paul.producer.close()


def test_a_producer_that_was_replaced_commits_no_offsets(kshim: Server, made: str) -> None:
    zombie = Transactional(kshim.bootstrap, made)
    zombie.begin(5)
    paul = Transactional(kshim.bootstrap, made)
    with pytest.raises(KafkaError):
        zombie.producer.commit_transaction()
    assert committed(kshim.bootstrap, made) is None
    paul.commit(6)
    assert committed(kshim.bootstrap, made) == 6
    zombie.producer.close(timeout=0)
    paul.producer.close()


def test_offsets_of_a_transaction_that_takes_too_long_do_not_count(kshim: Server, made: str) -> None:
    paul = Transactional(kshim.bootstrap, made)
    paul.commit(5)
    paul.producer.close()
    petra = Transactional(kshim.bootstrap, made, transaction_timeout_ms=1_000)
    begun = time.monotonic()
    petra.begin(6)
    assert committed(kshim.bootstrap, made) == 5, "it is asked until the transaction has ended"
    assert time.monotonic() - begun > 0.5
    with pytest.raises(KafkaError):
        petra.producer.commit_transaction()
    assert committed(kshim.bootstrap, made) == 5
    petra.producer.close(timeout=0)


class Copier(threading.Thread):
    """Copies records, and commits how far it has come, in transactions of a few records. With librdkafka: the
    producer of kafka-python waits for ever for a coordinator that was killed.
    """

    def __init__(self, servers: list[Server], topic: str, count: int) -> None:
        super().__init__(daemon=True)
        self._servers = {"bootstrap.servers": ",".join(each.bootstrap for each in servers)}
        self._topic, self._count = topic, count
        self.copied = 0
        self.begun_anew = 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while self.copied < self._count:
                try:
                    self._copy()
                except KafkaException:
                    self.begun_anew += 1
        except BaseException as fault:
            self.fault = fault

    def _copy(self) -> None:
        """Begin where the group has come to, as any program does that was restarted."""
        of_group = {"group.id": f"group-of-{self._topic}", "enable.auto.commit": False}
        settings = {"auto.offset.reset": "earliest", "session.timeout.ms": 6_000}
        source = Consumer({**self._servers, **of_group, **settings})
        producer = Producer({**self._servers, "transactional.id": f"copier-{self._topic}"})
        try:
            source.subscribe([self._topic])
            producer.init_transactions(PATIENCE_S)
            while self.copied < self._count:
                records = source.consume(7, 0.5)
                if not records:
                    continue
                producer.begin_transaction()
                for record in records:
                    producer.produce(f"{self._topic}-copies", record.value())
                positions, metadata = source.position(source.assignment()), source.consumer_group_metadata()
                producer.send_offsets_to_transaction(positions, metadata, PATIENCE_S)
                producer.commit_transaction(PATIENCE_S)
                self.copied = records[-1].offset() + 1
        finally:
            source.close()


def coordinator(servers: list[Server], group_id: str) -> Server:
    """The kshim that coordinates the group."""
    with Wire(servers[0].host, servers[0].port) as wire:
        found = wire.ask(FIND, FindCoordinatorRequest(key=group_id))
    (server,) = (each for each in servers if (each.host, each.port) == (found.host, found.port))
    return server


def test_each_record_is_copied_once_though_kshim_is_killed(
    kafka: Server, new_kshim: Callable[[], Server], made: str
) -> None:
    """Twice: the group's coordinator, in the middle of transactions."""
    servers = [new_kshim(), new_kshim()]
    wait_until(
        lambda: all(any("25 of 50 shards" in line for line in each.log) for each in servers), 20, "both lead"
    )
    values = [b"%d" % number for number in range(1_500)]
    producer = new_producer(kafka.bootstrap)
    for value in values:
        producer.send(made, value)
    producer.close()
    copier = Copier(servers, made, len(values))
    copier.start()
    for goal in (200, 900):
        wait_until(lambda goal=goal: copier.copied >= goal or copier.fault, PATIENCE_S, f"{goal} copies")
        killed = coordinator(servers, f"group-of-{made}")
        killed.kill()
        killed.restart()
    copier.join(PATIENCE_S)
    assert not copier.is_alive(), f"{copier.copied} copied"
    assert copier.fault is None
    assert copies(kafka.bootstrap, made, len(values)) == values
    assert committed(servers[0].bootstrap, made) == len(values)


def copies(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """The copies that are committed; at least so many."""
    consumer = new_consumer(
        bootstrap, f"{topic}-copies", isolation_level="read_committed", consumer_timeout_ms=5_000
    )
    found = [record.value for record in consumer]
    consumer.close()
    assert len(found) >= count
    return found
