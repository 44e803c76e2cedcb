"""Groups of real clients move to kshim, back to Apache Kafka, and to kshim again: nothing is read twice or
skipped, whatever auto.offset.reset says.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer
from integration.support.server import Server

WITHIN_S = 30
PART = 5
"""So many records are read at a time."""


def with_kafka_python(bootstrap: str, topic: str, reset: str) -> list[bytes]:
    """Read PART records as a member of the topic's group, and commit."""
    consumer = new_consumer(
        bootstrap,
        topic,
        group_id=topic,
        auto_offset_reset=reset,
        enable_auto_commit=False,
        max_poll_records=1,
    )
    found: list[bytes] = []

    def read() -> bool:
        for records in consumer.poll(500).values():
            found.extend(record.value for record in records)
            consumer.commit()
        return len(found) >= PART

    try:
        wait_until(read, WITHIN_S, lambda: f"{PART} records, not {found}")
    finally:
        consumer.close(autocommit=False)
    return found


def with_librdkafka(protocol: str) -> Callable[[str, str, str], list[bytes]]:
    def read(bootstrap: str, topic: str, reset: str) -> list[bytes]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": topic,
                "group.protocol": protocol,
                "auto.offset.reset": reset,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
            }
        )
        consumer.subscribe([topic])
        found: list[bytes] = []
        ends_s = time.monotonic() + WITHIN_S
        while len(found) < PART:
            assert time.monotonic() < ends_s, f"{PART} records, not {found}"
            if (message := consumer.poll(0.5)) is not None and message.error() is None:
                found.append(message.value() or b"")
                consumer.commit(message, asynchronous=False)
        consumer.close()
        return found

    return read


READERS = {
    "kafka-python": with_kafka_python,
    "librdkafka classic": with_librdkafka("classic"),
    "librdkafka consumer": with_librdkafka("consumer"),
}


@pytest.mark.parametrize("reset", ["earliest", "latest"])
@pytest.mark.parametrize("reader", READERS)
def test_a_group_goes_on_where_it_was_at_the_other_side(
    kafka: Server, kshim: Server, topic: str, reader: str, reset: str
) -> None:
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    producer = new_producer(kafka.bootstrap)
    for number in range(6 * PART):
        producer.send(topic, b"%d" % number)
    producer.flush()
    producer.close()
    read = READERS[reader]
    found = read(kafka.bootstrap, topic, "earliest")

    def is_copied() -> bool:
        return bool(admin.group_offsets(topic).get((topic, 0)) == len(found))

    for side in (kshim, kafka, kshim, kafka, kshim):
        found.extend(read(side.bootstrap, topic, reset))
        wait_until(is_copied, WITHIN_S, kshim.report)
    assert found == [b"%d" % number for number in range(6 * PART)]
    assert len([line for line in kshim.log if f"group {topic} joins here" in line]) == 3
    admin.close()
