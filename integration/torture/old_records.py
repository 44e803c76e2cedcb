"""Shows that librdkafka gives a program old records of a partition that was taken away too soon.

    python -m integration.torture.old_records BOOTSTRAP

A program assigns a partition, takes it away after some milliseconds, while the client asks for the first
offset, and assigns it again later, when offset 14 is committed. The client has to read from 14 on. The exit
status is 1 if it did not.
"""

from __future__ import annotations

import sys
import time
import uuid

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

RECORDS, COMMITTED = 20, 14
TRIES = 100
STEP_S = 0.004
AWAY_S = 0.7
"""librdkafka asks for the offset again after half a second."""
READ_S = 1.2


def filled(bootstrap: str) -> TopicPartition:
    """The partition of a new topic with records."""
    topic = f"old-records-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, str(number))
    producer.flush()
    return TopicPartition(topic, 0)


def read(consumer: Consumer, seconds: float) -> list[int]:
    """The offsets of the records that come in so many seconds."""
    end_s = time.monotonic() + seconds
    found: list[int] = []
    while time.monotonic() < end_s:
        message = consumer.poll(0.01)
        if message is not None and message.error() is None:
            found.append(message.offset() or 0)
    return found


def read_again(bootstrap: str, at: TopicPartition, after_s: float) -> list[int]:
    """The offsets that come when a partition is assigned again that was taken away after so many seconds."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": str(uuid.uuid4()),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([at])
    read(consumer, after_s)
    consumer.unassign()
    read(consumer, AWAY_S)
    commit(consumer, TopicPartition(at.topic, 0, COMMITTED))
    consumer.assign([at])
    found = read(consumer, READ_S)
    consumer.close()
    return found


def commit(consumer: Consumer, at: TopicPartition) -> None:
    """Commit an offset, once a broker coordinates the group."""
    while True:
        try:
            consumer.commit(offsets=[at], asynchronous=False)
            return
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise


def main(bootstrap: str) -> int:
    at = filled(bootstrap)
    wrong = 0
    for number in range(TRIES):
        after_s = number * STEP_S
        found = read_again(bootstrap, at, after_s)
        if found != list(range(COMMITTED, RECORDS)):
            wrong += 1
            print(f"taken away after {after_s * 1000:.0f} ms: then came {found}", flush=True)
    print(f"old records in {wrong} of {TRIES} tries")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
