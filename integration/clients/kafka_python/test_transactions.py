"""Transactions with real clients: committed records are read, aborted ones are not, one producer at a time.

kafka-python's transactional producer works since 3.0; librdkafka's is tested where it is installed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from integration.support.awaiting import wait_until
from integration.support.clients import VERSION, Admin, new_consumer, new_producer, offset_and_metadata
from integration.support.server import Server

if VERSION < (3, 0):
    pytest.skip(f"kafka-python {VERSION} has no finished transactional producer", allow_module_level=True)

QUICK = ("--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=200")
PATIENCE_S = 20


@pytest.fixture
def producers() -> Iterator[Callable[..., KafkaProducer]]:
    """Makes transactional producers that have begun; closes them without waiting."""
    made: list[KafkaProducer] = []

    def new(bootstrap: str, transactional_id: str, **options: Any) -> KafkaProducer:
        producer = new_producer(bootstrap, transactional_id=transactional_id, **options)
        made.append(producer)
        producer.init_transactions()
        return producer

    yield new
    for producer in made:
        producer.close(timeout=0)


def send(producer: KafkaProducer, topic: str, *values: bytes, partition: int = 0) -> None:
    for future in [producer.send(topic, value, partition=partition) for value in values]:
        future.get(timeout=PATIENCE_S)


def read(bootstrap: str, topic: str, count: int, isolation_level: str = "read_committed") -> list[bytes]:
    """At least `count` values, up to the end of what the consumer may read."""
    consumer = new_consumer(bootstrap, isolation_level=isolation_level)
    partitions = [TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic))]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    values: list[bytes] = []

    def all_read() -> bool:
        for records in consumer.poll(200).values():
            values.extend(record.value for record in records)
        ends = consumer.end_offsets(partitions)
        return len(values) >= count and all(consumer.position(tp) >= end for tp, end in ends.items())

    wait_until(all_read, PATIENCE_S, lambda: f"{count} values, of which there are {values}")
    consumer.close()
    return sorted(values)


def name() -> str:
    return f"tx-{uuid.uuid4()}"


def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    server: Server, admin: Admin, topic: str, producers: Callable[..., KafkaProducer]
) -> None:
    admin.create_topic(topic, 3)
    producer = producers(server.bootstrap, name())
    for number in range(6):
        producer.begin_transaction()
        for partition in range(3):
            send(producer, topic, b"%d-%d" % (number, partition), partition=partition)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    committed = [b"%d-%d" % (number, partition) for number in (0, 2, 4) for partition in range(3)]
    everything = [b"%d-%d" % (number, partition) for number in range(6) for partition in range(3)]
    assert read(server.bootstrap, topic, len(committed)) == committed
    assert read(server.bootstrap, topic, len(everything), "read_uncommitted") == everything


def test_what_is_not_committed_yet_holds_back_what_comes_after_it(
    server: Server, admin: Admin, topic: str, producers: Callable[..., KafkaProducer]
) -> None:
    admin.create_topic(topic, 1)
    slow, quick = producers(server.bootstrap, name()), producers(server.bootstrap, name())
    slow.begin_transaction()
    send(slow, topic, b"slow")
    quick.begin_transaction()
    send(quick, topic, b"quick")
    quick.commit_transaction()
    assert read(server.bootstrap, topic, 0) == []
    slow.commit_transaction()
    assert read(server.bootstrap, topic, 2) == [b"quick", b"slow"]


def test_the_producer_that_comes_last_fences_the_one_before(
    server: Server, admin: Admin, topic: str, producers: Callable[..., KafkaProducer]
) -> None:
    admin.create_topic(topic, 1)
    transactional_id = name()
    first = producers(server.bootstrap, transactional_id)
    first.begin_transaction()
    send(first, topic, b"first")
    second = producers(server.bootstrap, transactional_id)
    second.begin_transaction()
    send(second, topic, b"second")
    with pytest.raises(KafkaError):
        first.commit_transaction()
    second.commit_transaction()
    assert read(server.bootstrap, topic, 1) == [b"second"]


@pytest.mark.kshim_only("reads kshim's log")
def test_a_transaction_whose_time_is_up_is_aborted(
    new_server: Callable[..., Server], topic: str, producers: Callable[..., KafkaProducer]
) -> None:
    server = new_server(*QUICK).start()
    admin = Admin(server.bootstrap)
    admin.create_topic(topic, 1)
    producer = producers(server.bootstrap, name(), transaction_timeout_ms=500)
    producer.begin_transaction()
    send(producer, topic, b"never")
    wait_until(lambda: any("its time is up" in line for line in server.log), PATIENCE_S, "the abort")
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    plain = new_producer(server.bootstrap)
    send(plain, topic, b"plain")
    assert read(server.bootstrap, topic, 1) == [b"plain"]
    plain.close()
    admin.close()


def test_offsets_are_committed_with_the_records(
    server: Server, admin: Admin, topic: str, producers: Callable[..., KafkaProducer]
) -> None:
    admin.create_topic(topic, 1)
    source, group = TopicPartition(topic, 0), f"group-{topic}"
    consumer = new_consumer(server.bootstrap, group_id=group)
    producer = producers(server.bootstrap, name())
    for offset, committed in ((5, True), (9, False)):
        producer.begin_transaction()
        send(producer, topic, b"%d" % offset)
        producer.send_offsets_to_transaction({source: offset_and_metadata(offset, "note")}, group)
        producer.commit_transaction() if committed else producer.abort_transaction()
    wait_until(lambda: consumer.committed(source) == 5, PATIENCE_S, lambda: str(consumer.committed(source)))
    assert read(server.bootstrap, topic, 1) == [b"5"]
    consumer.close()


def test_consume_transform_produce_loses_nothing_and_repeats_nothing_through_kill_9(
    own_server: Server, topic: str, producers: Callable[..., KafkaProducer]
) -> None:
    """The server is killed both in an open transaction and right after a commit."""
    server, count, group = own_server, 60, "copiers"
    admin = Admin(server.bootstrap)
    copies = f"{topic}-copies"
    admin.create_topic(topic, 1)
    admin.create_topic(copies, 1)
    plain = new_producer(server.bootstrap)
    send(plain, topic, *(b"%02d" % number for number in range(count)))
    plain.close()
    source, transactional_id = TopicPartition(topic, 0), name()

    def copy(most: int, *, commit: bool) -> int:
        """Copy up to `count` records from the group's position; returns the new position."""
        consumer = new_consumer(server.bootstrap, group_id=group)
        consumer.assign([source])
        done = consumer.committed(source) or 0
        consumer.seek(source, done)
        producer = producers(server.bootstrap, transactional_id)
        producer.begin_transaction()
        values: list[bytes] = []
        while len(values) < min(most, count - done):
            for records in consumer.poll(200, max_records=most - len(values)).values():
                values.extend(record.value for record in records)
        send(producer, copies, *values)
        producer.send_offsets_to_transaction({source: offset_and_metadata(done + len(values))}, group)
        if commit:
            producer.commit_transaction()
        consumer.close()
        return done + len(values)

    done = 0
    while done < count:
        copy(7, commit=False)
        server.kill()
        server.start()
        done = copy(10, commit=True)
        server.kill()
        server.start()
    assert read(server.bootstrap, copies, count) == [b"%02d" % number for number in range(count)]
    admin.close()


def test_librdkafka_commits_and_aborts(server: Server, admin: Admin, topic: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    admin.create_topic(topic, 2)
    group, source = f"group-{topic}", confluent_kafka.TopicPartition(topic, 0, 7)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": server.bootstrap, "transactional.id": name(), "log_level": 0}
    )
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    producer.init_transactions(PATIENCE_S)
    for number in range(4):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(topic, b"%d-%d" % (number, partition), partition=partition)
        producer.flush(PATIENCE_S)
        if number % 2:
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.send_offsets_to_transaction([source], consumer.consumer_group_metadata(), PATIENCE_S)
            producer.commit_transaction(PATIENCE_S)
    assert read(server.bootstrap, topic, 4) == [b"0-0", b"0-1", b"2-0", b"2-1"]
    (committed,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], PATIENCE_S)
    assert committed.offset == 7
    consumer.close()


def test_librdkafka_is_fenced(server: Server, admin: Admin, topic: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    admin.create_topic(topic, 1)
    settings = {"bootstrap.servers": server.bootstrap, "transactional.id": name(), "log_level": 0}
    first, second = confluent_kafka.Producer(settings), confluent_kafka.Producer(settings)
    first.init_transactions(PATIENCE_S)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(PATIENCE_S)
    second.init_transactions(PATIENCE_S)
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        first.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].fatal()
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(PATIENCE_S)
    assert read(server.bootstrap, topic, 1) == [b"second"]


def test_consumers_follow_a_producer_at_work(
    server: Server, admin: Admin, topic: str, producers: Callable[..., KafkaProducer]
) -> None:
    """A read_committed consumer waits at the open transaction, and goes on when it has ended."""
    admin.create_topic(topic, 1)
    producer = producers(server.bootstrap, name())
    consumer: KafkaConsumer = new_consumer(server.bootstrap, isolation_level="read_committed")
    consumer.assign([TopicPartition(topic, 0)])
    values: list[bytes] = []

    def has_read(count: int) -> bool:
        values.extend(r.value for records in consumer.poll(100).values() for r in records)
        return len(values) >= count

    for number in range(5):
        producer.begin_transaction()
        send(producer, topic, b"%d" % number)
        assert not has_read(number + 1)
        producer.commit_transaction()
        wait_until(lambda: has_read(number + 1), PATIENCE_S, f"transaction {number}")  # noqa: B023
    assert values == [b"0", b"1", b"2", b"3", b"4"]
    consumer.close()
