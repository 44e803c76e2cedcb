"""Rate of records that librdkafka produces and consumes, with one client in one process.

Its settings are its defaults, with acks=all. The records of one round are limited, so that a run
does not fill the disk.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from benchmarks.generator import Load
from benchmarks.processor import Measured, Window
from benchmarks.raw import RETRY_S, Connection
from benchmarks.servers import Target

TIMEOUT_S = 120
MOST_BYTES = 256 * 1024 * 1024
"""So much is produced in a round, and so much is there to consume, at most."""
AT_ONCE_BYTES = 256 * 1024
CONSUMED_AT_ONCE = 10_000
PAUSE_MS = 5
"""When librdkafka has 100,000 records that the application has not taken, it fetches no more for a second: a
server that is faster than the application would be found slow for it."""
DISK_BYTES = 1024 * 1024
DISK_SECONDS = 1.0


def produce(target: Target, load: Load, seconds: float) -> Measured:
    """Records of `value_bytes` to so many `partitions`, until all are acknowledged.

    Where kshim syncs what it acknowledges, the second figure is what a plain file gets on the same disk.
    """
    size = load["value_bytes"]
    topic = Connection(target.bootstrap).new_topic(load["partitions"])
    producer = new_producer(target)
    producer.produce(topic, b"first")
    flush(producer)
    sent = 0
    with Window(target.pid) as window:
        while window.so_far_s < seconds and sent * size < MOST_BYTES:
            sent += send_some(producer, topic, size)
        flush(producer)
    end = sum(ends(target, topic, load["partitions"]))
    if end != sent + 1:
        raise RuntimeError(f"{sent + 1} records were produced, and {end} are there")
    figures = {"records/s": sent / window.seconds}
    if load.get("disk"):
        figures["MB/s"] = sent * size / window.seconds / 1e6
        if target.flush == "commit":
            figures["plain file MB/s"] = synced_mb_s(Path(target.data_dir).with_name("plain"))
    return window.measured(sent, figures)


def new_producer(target: Target) -> Producer:
    return Producer({"bootstrap.servers": target.bootstrap, "acks": "all", "message.timeout.ms": 60_000})


def send_some(producer: Producer, topic: str, size: int) -> int:
    """Queue some records; returns how many. Waits a moment when the client's queue is full."""
    value = os.urandom(size)
    messages = [{"value": value} for _ in range(max(AT_ONCE_BYTES // size, 1))]
    taken = 0
    with suppress(BufferError):
        taken = int(producer.produce_batch(topic, messages))
    if taken < len(messages):
        producer.poll(0.005)
    return taken


def flush(producer: Producer) -> None:
    left = producer.flush(TIMEOUT_S)
    if left:
        raise TimeoutError(f"{left} records were not acknowledged within {TIMEOUT_S} s")


def ends(target: Target, topic: str, partitions: int) -> list[int]:
    """The high watermark of each partition."""
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "benchmark-ends"})
    try:
        return [end_of(consumer, TopicPartition(topic, index)) for index in range(partitions)]
    finally:
        consumer.close()


def end_of(consumer: Consumer, partition: TopicPartition) -> int:
    """Asks again until a new partition has its leader: Apache Kafka announces leaders before they lead."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return int(consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)[1])
        except KafkaException as error:
            not_yet = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
            if not not_yet or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)


def synced_mb_s(path: Path) -> float:
    """The rate of a plain file that is synced after each MiB."""
    data = os.urandom(DISK_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began = time.perf_counter()
    try:
        for number in count(1):
            os.write(descriptor, data)
            os.fdatasync(descriptor)
            took = time.perf_counter() - began
            if took > DISK_SECONDS:
                return number * DISK_BYTES / took / 1e6
    finally:
        os.close(descriptor)
        path.unlink()
    raise AssertionError("never gets here")


def consume(target: Target, load: Load, seconds: float) -> Measured:
    """Records from the beginning of a topic, which is filled in the first round."""
    size, partitions = load["value_bytes"], load["partitions"]
    topic = f"consume-{size}-{partitions}"
    fill(target, topic, load)
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": f"benchmark-{uuid4()}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": PAUSE_MS,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    if consumer.poll(TIMEOUT_S) is None:
        raise TimeoutError("no record came")
    wanted, taken = load["records"] - 1, 0
    with Window(target.pid) as window:
        while taken < wanted and window.so_far_s < seconds:
            messages = consumer.consume(min(CONSUMED_AT_ONCE, wanted - taken), 0.1)
            for message in messages:
                if message.error() is not None:
                    raise KafkaException(message.error())
            taken += len(messages)
    consumer.close()
    return window.measured(taken, {"records/s": taken / window.seconds})


def fill(target: Target, topic: str, load: Load) -> None:
    """Produce what is not there yet."""
    Connection(target.bootstrap).new_topic(load["partitions"], topic)
    left = load["records"] - sum(ends(target, topic, load["partitions"]))
    producer = new_producer(target)
    while left > 0:
        left -= send_some(producer, topic, load["value_bytes"])
    flush(producer)
