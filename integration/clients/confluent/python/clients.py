"""Helpers for the tests of Confluent's Python client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

Key = TypeVar("Key")

VERSION = tuple(int(part) for part in confluent_kafka.__version__.split(".")[:2])
ANSWER_S = 20
"""No answer may take longer; kshim's and Apache Kafka's take milliseconds."""
QUIET = {"log_level": 0, "reconnect.backoff.ms": 20}


def needs(name: str, owner: object = AdminClient) -> pytest.MarkDecorator:
    """Marks a test of something that older versions of the client do not have."""
    reason = f"{name} is not in confluent-kafka {confluent_kafka.__version__}"
    return pytest.mark.skipif(not hasattr(owner, name), reason=reason)


def outcome(future: Future[Any]) -> Any:
    """The result, or the name of the error."""
    try:
        return future.result(ANSWER_S)
    except KafkaException as error:
        return name_of(error)


def outcomes(futures: Mapping[Key, Future[Any]]) -> dict[Key, Any]:
    return {key: outcome(future) for key, future in futures.items()}


def name_of(error: KafkaException | KafkaError) -> str:
    return str(error.args[0].name() if isinstance(error, KafkaException) else error.name())


def offsets(partitions: list[TopicPartition]) -> dict[int, int]:
    """partition -> offset; asserts that no partition has an error."""
    assert [partition.error for partition in partitions if partition.error] == []
    return {partition.partition: partition.offset for partition in partitions}


def send(producer: Producer, topic: str, *values: bytes | str | None, **options: Any) -> list[Any]:
    """Send records; returns the delivered messages."""
    delivered: list[Any] = []
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Any) -> None:
        if error is None:
            delivered.append(message)
        else:
            failed.append(error)

    for value in values:
        producer.produce(topic, value, on_delivery=on_delivery, **options)
    assert producer.flush(ANSWER_S) == 0
    assert failed == []
    assert len(delivered) == len(values)
    return delivered


def receive(consumer: Consumer, count: int) -> list[Any]:
    """At least `count` messages; raises the errors that come as events."""
    messages: list[Any] = []
    deadline = time.monotonic() + ANSWER_S
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} messages: {messages[:5]}"
        if (message := consumer.poll(0.1)) is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        messages.append(message)
    return messages


def poll_until(condition: Callable[[], object], *consumers: Consumer, what: str) -> None:
    """Poll all clients, so that their callbacks are called, until the condition holds."""
    deadline = time.monotonic() + ANSWER_S
    errors: list[KafkaError] = []
    while not condition():
        assert time.monotonic() < deadline, f"not within {ANSWER_S} s: {what}; errors: {errors}"
        messages = [consumer.poll(0.02) for consumer in consumers]
        errors += [message.error() for message in messages if message is not None and message.error()]
