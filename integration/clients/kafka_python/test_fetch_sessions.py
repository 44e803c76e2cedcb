"""A consumer of many partitions, most of them quiet, gets each record once, even from a restarted server.

That server has been killed and does not know the consumer's fetch session (KIP-227).
"""

from __future__ import annotations

import random
import time
from collections import Counter

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer
from integration.support.server import Server

PARTITIONS = 100
RECORDS = 30
READ_S = 20
POLL_MS = 100


def send(producer: KafkaProducer, topic: str, names: range) -> None:
    """One record to each of some random partitions."""
    for name in names:
        place = random.randrange(PARTITIONS)
        producer.send(topic, str(name).encode(), partition=place)
    producer.flush(READ_S)


def read(consumer: KafkaConsumer, count: int, within_s: float = READ_S) -> Counter[int]:
    """The next `count` records."""
    found: Counter[int] = Counter()
    deadline = time.monotonic() + within_s
    while found.total() < count and time.monotonic() < deadline:
        for records in consumer.poll(POLL_MS).values():
            found.update(int(record.value) for record in records)
    return found


def test_quiet_partitions_and_a_server_that_forgets(own_server: Server, topic: str) -> None:
    admin = Admin(own_server.bootstrap)
    admin.create_topic(topic, PARTITIONS)
    wait_until(lambda: len(admin.partitions(topic)) == PARTITIONS, 10, "the topic's leaders")
    admin.close()
    producer = new_producer(own_server.bootstrap)
    consumer = new_consumer(own_server.bootstrap)
    consumer.assign([TopicPartition(topic, index) for index in range(PARTITIONS)])
    try:
        for start in (0, RECORDS):
            names = range(start, start + RECORDS)
            send(producer, topic, names)
            assert read(consumer, RECORDS) == Counter(names)
            own_server.kill()
            own_server.restart()
        assert not read(consumer, 1, within_s=1)
    finally:
        consumer.close()
        producer.close()
