"""Transactions: committed records are read, aborted ones are not, and an id has one producer at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from integration.clients.confluent.python.clients import ANSWER_S, name_of, offsets, receive


@pytest.fixture
def begin(new_producer: Callable[..., Producer], topic: str) -> Callable[[], Producer]:
    """A transactional producer that has begun; all of them have the same id."""

    def begin() -> Producer:
        producer = new_producer(transactional_id=f"tx-of-{topic}")
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
        return producer

    return begin


@pytest.fixture
def read(new_consumer: Callable[..., Consumer]) -> Callable[..., list[bytes]]:
    """All values of partition 0 up to the one that ends the reading."""

    def read(topic: str, last: bytes, isolation_level: str) -> list[bytes]:
        consumer = new_consumer(isolation_level=isolation_level)
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        while last not in values:
            values += [message.value() for message in receive(consumer, 1)]
        return values

    return read


def test_commit_and_abort(
    begin: Callable[[], Producer], new_topic: Callable[..., str], read: Callable[..., list[bytes]]
) -> None:
    topic = new_topic()
    producer = begin()
    producer.produce(topic, b"committed", partition=0)
    producer.commit_transaction(ANSWER_S)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    assert producer.flush(ANSWER_S) == 0
    producer.abort_transaction(ANSWER_S)
    producer.begin_transaction()
    producer.produce(topic, b"last", partition=0)
    producer.commit_transaction(ANSWER_S)
    assert read(topic, b"last", "read_committed") == [b"committed", b"last"]
    assert read(topic, b"last", "read_uncommitted") == [b"committed", b"aborted", b"last"]


def test_what_is_open_is_not_read(
    begin: Callable[[], Producer], new_topic: Callable[..., str], new_consumer: Callable[..., Consumer]
) -> None:
    topic = new_topic()
    producer = begin()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(ANSWER_S) == 0
    partition = TopicPartition(topic, 0, 0)
    committed = new_consumer(isolation_level="read_committed")
    committed.assign([partition])
    assert committed.poll(0.5) is None
    assert committed.get_watermark_offsets(partition, ANSWER_S) == (0, 0)
    producer.commit_transaction(ANSWER_S)
    assert [message.value() for message in receive(committed, 1)] == [b"open"]


@pytest.mark.parametrize("commits", [True, False])
def test_offsets_go_with_the_transaction(
    commits: bool,
    begin: Callable[[], Producer],
    producer: Producer,
    new_topic: Callable[..., str],
    new_consumer: Callable[..., Consumer],
    group_id: str,
) -> None:
    source, target = new_topic(suffix="-source"), new_topic(suffix="-target")
    producer.produce(source, b"1", partition=0)
    assert producer.flush(ANSWER_S) == 0
    consumer = new_consumer(group_id)
    consumer.subscribe([source])
    (message,) = receive(consumer, 1)
    producer = begin()
    producer.produce(target, message.value(), partition=0)
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), ANSWER_S
    )
    if commits:
        producer.commit_transaction(ANSWER_S)
    else:
        producer.abort_transaction(ANSWER_S)
    found = offsets(consumer.committed([TopicPartition(source, 0)], ANSWER_S))
    assert found == ({0: 1} if commits else {0: -1001})


def test_offsets_of_a_group_that_has_gone_on(
    begin: Callable[[], Producer],
    new_topic: Callable[..., str],
    new_consumer: Callable[..., Consumer],
    group_id: str,
) -> None:
    topic = new_topic()
    old = new_consumer(group_id)
    old.subscribe([topic])
    while not old.assignment():
        old.poll(0.02)
    metadata = old.consumer_group_metadata()
    old.close()
    producer = begin()
    with pytest.raises(KafkaException) as raised:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], metadata, ANSWER_S)
    assert name_of(raised.value) == "UNKNOWN_MEMBER_ID"
    assert raised.value.args[0].txn_requires_abort()
    producer.abort_transaction(ANSWER_S)


def test_the_second_of_an_id_fences_the_first(
    begin: Callable[[], Producer], new_topic: Callable[..., str], read: Callable[..., list[bytes]]
) -> None:
    topic = new_topic()
    first = begin()
    first.produce(topic, b"of the first", partition=0)
    assert first.flush(ANSWER_S) == 0
    second = begin()
    second.produce(topic, b"of the second", partition=0)
    second.commit_transaction(ANSWER_S)
    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(ANSWER_S)
    assert raised.value.args[0].fatal()
    assert name_of(raised.value) in ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    assert read(topic, b"of the second", "read_committed") == [b"of the second"]
