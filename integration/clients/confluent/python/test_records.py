"""Records are read as they were sent, in whatever way they were sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from integration.clients.confluent.python.clients import ANSWER_S, name_of, needs, receive, send

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def read(new_consumer: Callable[..., Consumer]) -> Callable[..., list[Any]]:
    """`count` messages of partition 0, from the start."""

    def read(topic: str, count: int, **config: object) -> list[Any]:
        consumer = new_consumer(**config)
        consumer.assign([TopicPartition(topic, 0, 0)])
        return receive(consumer, count)

    return read


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressions(
    compression: str,
    new_producer: Callable[..., Producer],
    new_topic: Callable[..., str],
    read: Callable[..., list[Any]],
) -> None:
    topic = new_topic()
    producer = new_producer(compression_type=compression, linger_ms=50, enable_idempotence=True)
    sent = [(f"key {number}".encode(), b"a value, and again a value" * number) for number in range(200)]
    for key, value in sent:
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(ANSWER_S) == 0
    assert [(message.key(), message.value()) for message in read(topic, 200, check_crcs=True)] == sent


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressions_of_the_topic(
    compression: str,
    new_producer: Callable[..., Producer],
    new_topic: Callable[..., str],
    read: Callable[..., list[Any]],
) -> None:
    """The broker recompresses batches that come in another compression."""
    topic = new_topic(compression_type=compression.replace("none", "uncompressed"))
    producer = new_producer(compression_type="gzip")
    send(producer, topic, *["again and again" * 100] * 3, partition=0)
    messages = read(topic, 3, check_crcs=True)
    assert [message.value() for message in messages] == [b"again and again" * 100] * 3


def test_keys_values_and_headers(
    producer: Producer, new_topic: Callable[..., str], read: Callable[..., list[Any]]
) -> None:
    topic = new_topic()
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("none", None), ("ä", "ö".encode())]
    send(producer, topic, b"value", key=b"key", headers=headers, partition=0)
    send(producer, topic, None, key=b"deleted", partition=0)
    send(producer, topic, b"", partition=0)
    full, deleted, empty = read(topic, 3)
    assert (full.key(), full.value(), full.headers()) == (b"key", b"value", headers)
    assert (deleted.key(), deleted.value(), deleted.headers()) == (b"deleted", None, None)
    assert (empty.key(), empty.value(), empty.headers()) == (None, b"", None)
    assert [(m.topic(), m.partition(), m.offset()) for m in (full, deleted, empty)] == [
        (topic, 0, offset) for offset in range(3)
    ]


def test_timestamps_of_the_client_and_of_the_broker(
    producer: Producer, new_topic: Callable[..., str], read: Callable[..., list[Any]]
) -> None:
    theirs = new_topic(suffix="-create")
    ours = new_topic(suffix="-append", message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    for topic in (theirs, ours):
        send(producer, topic, b"given", timestamp=123_456, partition=0)
        send(producer, topic, b"now", partition=0)
    given, now = (message.timestamp() for message in read(theirs, 2))
    assert given == (confluent_kafka.TIMESTAMP_CREATE_TIME, 123_456)
    assert now[1] >= before_ms
    for kind, timestamp_ms in (message.timestamp() for message in read(ours, 2)):
        assert kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
        assert before_ms <= timestamp_ms <= time.time() * 1000


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(
    acks: object,
    new_producer: Callable[..., Producer],
    new_topic: Callable[..., str],
    read: Callable[..., list[Any]],
) -> None:
    topic = new_topic()
    delivered = send(new_producer(acks=acks), topic, *map(str, range(5)), partition=0)
    if acks != 0:
        assert [message.offset() for message in delivered] == list(range(5))
    assert [message.value() for message in read(topic, 5)] == [b"0", b"1", b"2", b"3", b"4"]


def test_keys_decide_the_partition(
    producer: Producer, new_topic: Callable[..., str], new_consumer: Callable[..., Consumer]
) -> None:
    topic = new_topic(4)
    sent = {
        message.key(): message.partition()
        for key in range(20)
        for message in send(producer, topic, b"", key=str(key))
    }
    assert set(sent.values()) == {0, 1, 2, 3}
    consumer = new_consumer()
    consumer.assign([TopicPartition(topic, index, 0) for index in range(4)])
    assert {message.key(): message.partition() for message in receive(consumer, 20)} == sent


def test_a_large_message_and_one_that_is_too_large(
    new_producer: Callable[..., Producer], new_topic: Callable[..., str], read: Callable[..., list[Any]]
) -> None:
    topic, narrow = new_topic(), new_topic(suffix="-narrow", max_message_bytes="500")
    producer = new_producer(compression_type="none")
    send(producer, topic, b"x" * 900_000, partition=0)
    assert [len(message.value()) for message in read(topic, 1)] == [900_000]
    errors: list[str] = []
    producer.produce(narrow, b"x" * 1000, on_delivery=lambda error, _: errors.append(name_of(error)))
    assert producer.flush(ANSWER_S) == 0
    assert errors == ["MSG_SIZE_TOO_LARGE"]


def test_what_is_purged_is_not_sent(
    new_producer: Callable[..., Producer], new_topic: Callable[..., str], read: Callable[..., list[Any]]
) -> None:
    topic = new_topic()
    producer, errors = new_producer(linger_ms=60_000), []
    producer.produce(
        topic, b"purged", partition=0, on_delivery=lambda error, _: errors.append(name_of(error))
    )
    producer.purge()
    assert producer.poll(ANSWER_S) == 1
    assert errors == ["_PURGE_QUEUE"]
    producer = new_producer()
    send(producer, topic, b"sent", partition=0)
    assert [message.value() for message in read(topic, 1)] == [b"sent"]


@needs("produce_batch", Producer)
def test_a_batch_by_one_call(
    new_producer: Callable[..., Producer], new_topic: Callable[..., str], read: Callable[..., list[Any]]
) -> None:
    topic, producer = new_topic(), new_producer()
    messages = [{"value": b"%d" % number, "key": b"key"} for number in range(50)]
    assert producer.produce_batch(topic, messages, partition=0) == 50
    assert producer.flush(ANSWER_S) == 0
    assert [message.value() for message in read(topic, 50)] == [message["value"] for message in messages]
    producer.close()


def test_a_topic_that_is_made_by_sending_to_it(
    producer: Producer, topic: str, read: Callable[..., list[Any]]
) -> None:
    send(producer, topic, b"first", partition=0)
    assert [message.value() for message in read(topic, 1)] == [b"first"]
