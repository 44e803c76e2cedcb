"""Records are fetched as they were produced: keys, values, headers, timestamps, offsets, codecs, sizes."""

from __future__ import annotations

import os
import threading
import time

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, MessageSizeTooLargeError

from integration.support.awaiting import wait_until
from integration.support.clients import (
    HAS_IDEMPOTENCE,
    POLL_MS,
    Admin,
    new_consumer,
    new_producer,
    poll_records,
    read_all,
)
from integration.support.server import Server

HEADERS = [("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""), ("ümlaut", "ö".encode())]
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
ONE_MIB = 1 << 20


def create(admin: Admin, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    """Create the topic, and wait until it accepts records."""
    admin.create_topic(topic, partitions, configs)
    wait_until(lambda: len(admin.partitions(topic)) == partitions, 10, f"{partitions} leaders for {topic}")


def send_all(producer: KafkaProducer, topic: str, values: list[bytes], **options: object) -> list:
    """Send all records; returns the metadata of each once all are acknowledged."""
    futures = [producer.send(topic, value, **options) for value in values]
    return [future.get(timeout=20) for future in futures]


def test_every_field_of_a_record(server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, partitions=3)
    sent = [
        (0, b"key", b"value", HEADERS, 1_000),
        (1, None, b"no key", [], 2_000),
        (2, b"tombstone", None, [], 3_000),
        (0, b"", b"", [], 1_500),
        (0, b"caf\xc3\xa9", os.urandom(300), [("n", b"1")], 900),
    ]
    producer = new_producer(server.bootstrap)
    for partition, key, value, headers, timestamp_ms in sent:
        metadata = producer.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        ).get(timeout=20)
        assert (metadata.topic, metadata.partition) == (topic, partition)
        assert metadata.timestamp == timestamp_ms
    producer.close()

    records = read_all(server.bootstrap, topic, len(sent))
    found = [(r.partition, r.offset, r.key, r.value, list(r.headers), r.timestamp) for r in records]
    offsets = {0: 0, 1: 0, 2: 0}
    expected = []
    for partition, key, value, headers, timestamp_ms in sent:
        expected.append((partition, offsets[partition], key, value, headers, timestamp_ms))
        offsets[partition] += 1
    assert found == sorted(expected, key=lambda record: record[:2])
    assert {record.timestamp_type for record in records} == {0}


def test_a_record_without_a_timestamp_gets_the_producers_clock(server: Server, topic: str) -> None:
    before = int(time.time() * 1000)
    producer = new_producer(server.bootstrap)
    send_all(producer, topic, [b"now"])
    producer.close()
    (record,) = read_all(server.bootstrap, topic, 1)
    assert before <= record.timestamp <= int(time.time() * 1000)


def test_log_append_time(server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    producer = new_producer(server.bootstrap)
    producer.send(topic, b"old", timestamp_ms=1_000).get(timeout=20)
    producer.close()
    (record,) = read_all(server.bootstrap, topic, 1)
    assert record.timestamp_type == 1
    assert before - 1000 <= record.timestamp <= int(time.time() * 1000) + 1000


@pytest.mark.parametrize("codec", CODECS)
def test_compression(server: Server, admin: Admin, topic: str, codec: str | None) -> None:
    create(admin, topic)
    values = [f"{topic} {number} ".encode() * 50 for number in range(200)]
    producer = new_producer(server.bootstrap, compression_type=codec, linger_ms=50, batch_size=64_000)
    metadata = send_all(producer, topic, values, headers=[("codec", str(codec).encode())])
    producer.close()
    assert [m.offset for m in metadata] == list(range(200))
    records = read_all(server.bootstrap, topic, 200)
    assert [r.value for r in records] == values
    assert {tuple(r.headers) for r in records} == {(("codec", str(codec).encode()),)}


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(server: Server, admin: Admin, topic: str, acks: int | str) -> None:
    create(admin, topic)
    options = {"enable_idempotence": False} if HAS_IDEMPOTENCE else {}
    producer = new_producer(server.bootstrap, acks=acks, **options)
    values = [str(number).encode() for number in range(50)]
    metadata = send_all(producer, topic, values)
    if acks == 0:
        # kafka-python 2.2 and 2.3 send such a request only together with the next one that has an answer
        producer.partitions_for(f"{topic}-other")
    else:
        assert [m.offset for m in metadata] == list(range(50))
    producer.close()
    assert [r.value for r in read_all(server.bootstrap, topic, 50)] == values


@pytest.mark.skipif(not HAS_IDEMPOTENCE, reason="the idempotent producer came with kafka-python 2.1")
def test_idempotent_producer(server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, partitions=2)
    values = [str(number).encode() for number in range(500)]
    options = {"enable_idempotence": True, "batch_size": 500}
    first, second = (new_producer(server.bootstrap, **options) for _ in range(2))
    for producer, partition in ((first, 0), (second, 1), (first, 1)):
        send_all(producer, topic, values, partition=partition)
    first.close()
    second.close()
    records = read_all(server.bootstrap, topic, 1500)
    assert [r.value for r in records] == values * 3
    assert [r.offset for r in records] == [*range(500), *range(1000)]


def test_large_records(server: Server, admin: Admin, topic: str) -> None:
    """A record just under the server's limit passes; a larger one is refused, and the partition goes on."""
    create(admin, topic)
    big = os.urandom(ONE_MIB - 1000)
    producer = new_producer(server.bootstrap, max_request_size=4 * ONE_MIB, retries=0)
    send_all(producer, topic, [b"before", big])
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, os.urandom(2 * ONE_MIB)).get(timeout=20)
    send_all(producer, topic, [b"after"])
    producer.close()
    # a fetch limit below the record's size must not block the consumer
    records = read_all(server.bootstrap, topic, 3, fetch_max_bytes=1000, max_partition_fetch_bytes=1000)
    assert [r.value for r in records] == [b"before", big, b"after"]


def test_many_partitions_in_one_fetch(server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, partitions=40)
    producer = new_producer(server.bootstrap, max_in_flight_requests_per_connection=1)  # keeps the order
    futures = [producer.send(topic, str(n).encode(), partition=n % 40) for n in range(400)]
    assert {(f.get(20).partition, f.get(20).offset) for f in futures} == {
        (p, offset) for p in range(40) for offset in range(10)
    }
    producer.close()
    records = read_all(server.bootstrap, topic, 400)
    assert [int(r.value) for r in records] == [p + 40 * n for p in range(40) for n in range(10)]


@pytest.fixture
def timed_consumer(server: Server, admin: Admin, topic: str) -> KafkaConsumer:
    """A consumer of partition 0 with records at 1000, 2000 ... 10000 ms, and of partition 1 without any."""
    create(admin, topic, partitions=2)
    producer = new_producer(server.bootstrap)
    for second in range(1, 11):
        producer.send(topic, str(second).encode(), partition=0, timestamp_ms=second * 1000).get(timeout=20)
    producer.close()
    consumer = new_consumer(server.bootstrap)
    yield consumer
    consumer.close()


def test_beginning_and_end_offsets(timed_consumer: KafkaConsumer, topic: str) -> None:
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert timed_consumer.beginning_offsets([full, empty]) == {full: 0, empty: 0}
    assert timed_consumer.end_offsets([full, empty]) == {full: 10, empty: 0}


def test_offsets_for_times(timed_consumer: KafkaConsumer, topic: str) -> None:
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def look_up(timestamp_ms: int) -> tuple[int, int] | None:
        found = timed_consumer.offsets_for_times({full: timestamp_ms, empty: timestamp_ms})
        assert found[empty] is None
        return found[full] and (found[full].offset, found[full].timestamp)

    assert look_up(0) == (0, 1000)
    assert look_up(1000) == (0, 1000)
    assert look_up(3001) == (3, 4000)
    assert look_up(10_000) == (9, 10_000)
    assert look_up(10_001) is None


def test_seek(timed_consumer: KafkaConsumer, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    timed_consumer.assign([partition])
    timed_consumer.seek(partition, 7)
    assert [r.value for r in poll_records(timed_consumer, 3)] == [b"8", b"9", b"10"]
    timed_consumer.seek_to_beginning(partition)
    assert [r.offset for r in poll_records(timed_consumer, 10)] == list(range(10))
    timed_consumer.seek_to_end(partition)
    assert timed_consumer.position(partition) == 10
    timed_consumer.seek(partition, 0)
    assert timed_consumer.position(partition) == 0
    timed_consumer.seek(partition, 99)  # out of range: auto_offset_reset=earliest
    assert [r.offset for r in poll_records(timed_consumer, 10)] == list(range(10))


def test_a_waiting_consumer_is_woken_by_an_append(server: Server, admin: Admin, topic: str) -> None:
    """A fetch that may wait 20 s is answered at once when a record arrives."""
    create(admin, topic)
    consumer = new_consumer(server.bootstrap, fetch_max_wait_ms=20_000)
    consumer.assign([TopicPartition(topic, 0)])
    received: list[bytes] = []

    def receive() -> None:
        while len(received) < 5:
            received.extend(record.value for record in poll_records(consumer, 1, 60))

    receiver = threading.Thread(target=receive, daemon=True)
    receiver.start()
    producer = new_producer(server.bootstrap)
    for number in range(5):  # each is sent once the consumer waits again
        send_all(producer, topic, [str(number).encode()])
        wait_until(lambda sent=number + 1: len(received) == sent, 3, f"record {number}")
    producer.close()
    receiver.join(20)
    consumer.close()


def test_auto_creation_by_a_producer(server: Server, admin: Admin, topic: str) -> None:
    assert topic not in admin.list_topics()
    producer = new_producer(server.bootstrap)
    (metadata,) = send_all(producer, topic, [b"first"])
    producer.close()
    assert (metadata.partition, metadata.offset) == (0, 0)
    assert len(admin.partitions(topic)) == 1
    assert [r.value for r in read_all(server.bootstrap, topic, 1)] == [b"first"]


def test_auto_creation_by_a_consumer(server: Server, admin: Admin, topic: str) -> None:
    consumer = new_consumer(server.bootstrap, topic, group_id=topic, metadata_max_age_ms=500)
    wait_until(lambda: (consumer.poll(timeout_ms=POLL_MS), consumer.assignment())[1], 20, "an assignment")
    assert consumer.assignment() == {TopicPartition(topic, 0)}
    assert len(admin.partitions(topic)) == 1
    consumer.close()


def test_auto_creation_switched_off(new_server, topic: str) -> None:
    server = new_server("--set", "auto.create.topics.enable=false").start()
    producer = new_producer(server.bootstrap, max_block_ms=1500)
    with pytest.raises(KafkaError):
        producer.send(topic, b"nowhere").get(timeout=20)
    producer.close(timeout=1)
    admin = Admin(server.bootstrap)
    assert topic not in admin.list_topics()
    admin.close()


def test_two_groups_read_the_same_records(server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, partitions=2)
    producer = new_producer(server.bootstrap)
    futures = [producer.send(topic, str(n).encode(), partition=n % 2) for n in range(100)]
    assert len({(f.get(20).partition, f.get(20).offset) for f in futures}) == 100
    producer.close()
    for group_id in (f"{topic}-a", f"{topic}-b"):
        consumer = new_consumer(server.bootstrap, topic, group_id=group_id)
        assert sorted(int(r.value) for r in poll_records(consumer, 100)) == list(range(100))
        consumer.close()
