"""The committed records of a topic, read to its end."""

from __future__ import annotations

import itertools
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from integration.support.awaiting import wait_until
from integration.support.clients import new_consumer

READ_TIMEOUT_S = 60


def reader(bootstrap: str, topic: str, partitions: int) -> KafkaConsumer:
    """Reads the committed records of a topic from its beginning."""
    consumer = new_consumer(bootstrap, isolation_level="read_committed")
    assigned = [TopicPartition(topic, index) for index in range(partitions)]
    consumer.assign(assigned)
    consumer.seek_to_beginning(*assigned)
    return consumer


def read_to_end(consumer: KafkaConsumer) -> list[Any]:
    """The records up to what is now the end of committed ones."""
    ends = consumer.end_offsets(list(consumer.assignment()))
    records: list[Any] = []

    def at_end() -> bool:
        records.extend(itertools.chain.from_iterable(consumer.poll(200).values()))
        return all(consumer.position(partition) >= end for partition, end in ends.items())

    wait_until(at_end, READ_TIMEOUT_S, lambda: f"the end, {ends}, after {len(records)} records")
    return records
