"""Time of a record until it is acknowledged, and until a waiting consumer has it; by librdkafka."""

from __future__ import annotations

import random
import time
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from benchmarks.comparing import percentile
from benchmarks.generator import Load
from benchmarks.processor import Measured, Window
from benchmarks.raw import Connection
from benchmarks.servers import Target

TIMEOUT_S = 60
WARM_UPS = 20
PAUSE_S = 0.02
"""At most; a record is not sent in step with anything else."""
VALUE = bytes(100)


def producer_of(target: Target) -> Producer:
    """Waits for no second record."""
    return Producer({"bootstrap.servers": target.bootstrap, "acks": "all", "linger.ms": 0})


def send(producer: Producer, topic: str) -> None:
    """Send one record, and wait until it is acknowledged."""
    producer.produce(topic, VALUE, partition=0)
    if producer.flush(TIMEOUT_S):
        raise TimeoutError("a record was not acknowledged")


def times(took_ms: list[float]) -> dict[str, float]:
    return {"p50 ms": percentile(took_ms, 50), "p99 ms": percentile(took_ms, 99)}


def produce_sync(target: Target, _: Load, seconds: float) -> Measured:
    """One record at a time."""
    topic = Connection(target.bootstrap).new_topic(1)
    producer = producer_of(target)
    for _number in range(WARM_UPS):
        send(producer, topic)
    took_ms = []
    with Window(target.pid) as window:
        while window.so_far_s < seconds:
            began = time.perf_counter()
            send(producer, topic)
            took_ms.append((time.perf_counter() - began) * 1e3)
    return window.measured(len(took_ms), times(took_ms))


def tail(target: Target, _: Load, seconds: float) -> Measured:
    """Each record is sent soon after the last one has arrived."""
    topic = Connection(target.bootstrap).new_topic(1)
    producer = producer_of(target)
    settings = {"bootstrap.servers": target.bootstrap, "group.id": f"benchmark-{uuid4()}"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    send(producer, topic)
    consumer.assign([TopicPartition(topic, 0, 1)])
    for _number in range(WARM_UPS):
        way_ms(producer, consumer, topic)
    took_ms = []
    with Window(target.pid) as window:
        while window.so_far_s < seconds:
            took_ms.append(way_ms(producer, consumer, topic))
    consumer.close()
    return window.measured(len(took_ms), times(took_ms))


def way_ms(producer: Producer, consumer: Consumer, topic: str) -> float:
    """The time of one record from `produce` to `poll`."""
    time.sleep(random.uniform(0, PAUSE_S))
    began = time.perf_counter()
    producer.produce(topic, VALUE, partition=0)
    message = consumer.poll(TIMEOUT_S)
    took_ms = (time.perf_counter() - began) * 1e3
    if message is None:
        raise TimeoutError("a record did not arrive")
    if message.error() is not None:
        raise KafkaException(message.error())
    producer.poll(0)
    return took_ms
