"""Programs with kafka-python: `python -m integration.torture.museum.kafka_python NAME`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from integration.torture.museum.work import BOOTSTRAP, GROUP, TOPIC, end_at_sigterm, over, work

SETTINGS: dict[str, Any] = {
    "bootstrap_servers": BOOTSTRAP,
    "group_id": GROUP,
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 200,
    "reconnect_backoff_max_ms": 300,
    "retry_backoff_ms": 50,
    "max_poll_records": 50,
}

POLL_MS = 2000
"""Long, because kafka-python 3.0.12 loses its assignment when a poll ends while it joins."""


def consumer(**settings: Any) -> KafkaConsumer:
    return KafkaConsumer(TOPIC, **{**SETTINGS, **settings})


def polled(reader: KafkaConsumer) -> Iterable[tuple[TopicPartition, list[Any]]]:
    try:
        return reader.poll(timeout_ms=POLL_MS).items()
    except KafkaError:
        return ()


def mended(**settings: Any) -> None:
    """Process, then commit what is processed; what fails comes again."""
    reader = consumer(enable_auto_commit=False, **settings)
    while not over.is_set():
        for partition, records in polled(reader):
            for record in records:
                work(record.topic, record.partition, record.offset)
            commit(reader, partition, records[-1].offset + 1)
    reader.close()


def commit(reader: KafkaConsumer, partition: TopicPartition, offset: int) -> None:
    try:
        reader.commit({partition: OffsetAndMetadata(offset, "", -1)})
    except KafkaError as error:
        print("commit failed:", type(error).__name__, file=sys.stderr)


def commit_first() -> None:
    """Commit a batch, then process it."""
    reader = consumer(enable_auto_commit=False)
    while not over.is_set():
        for partition, records in polled(reader):
            commit(reader, partition, records[-1].offset + 1)
            for record in records:
                work(record.topic, record.partition, record.offset)
    reader.close()


def auto_commit_and_thread() -> None:
    """Hand records to a thread; the client commits what was polled, not what is processed."""
    reader = consumer(enable_auto_commit=True, auto_commit_interval_ms=300)
    with ThreadPoolExecutor(1) as pool:
        while not over.is_set():
            for _, records in polled(reader):
                for record in records:
                    pool.submit(work, record.topic, record.partition, record.offset)
        reader.close()


def latest() -> None:
    """Begin at the end: records from before the first commit are never read."""
    mended(auto_offset_reset="latest")


def silent() -> None:
    """Commits, and leaves nothing else."""
    reader = consumer(enable_auto_commit=False)
    while not over.is_set():
        for partition, records in polled(reader):
            commit(reader, partition, records[-1].offset + 1)
    reader.close()


def another_group() -> None:
    idle(consumer(group_id="another"))


def another_topic() -> None:
    idle(KafkaConsumer("another", **SETTINGS))


def no_subscription() -> None:
    reader = KafkaConsumer(**SETTINGS)
    reader.assign([TopicPartition(TOPIC, 0)])
    idle(reader)


def idle(reader: KafkaConsumer) -> None:
    while not over.is_set():
        polled(reader)


PROGRAMS: dict[str, Callable[[], None]] = {
    "mended": mended,
    "commit-first": commit_first,
    "auto-commit-and-thread": auto_commit_and_thread,
    "latest": latest,
    "silent": silent,
    "another-group": another_group,
    "another-topic": another_topic,
    "no-subscription": no_subscription,
}

if __name__ == "__main__":
    end_at_sigterm()
    PROGRAMS[sys.argv[1]]()
