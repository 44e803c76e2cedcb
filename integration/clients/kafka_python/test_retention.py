"""The start of a log moves: by DeleteRecords, and by retention."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

import pytest
from kafka import TopicPartition
from kafka.errors import OffsetOutOfRangeError

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer, until_served
from integration.support.handmade import Raw, array, request, string
from integration.support.server import FOREIGN_COMMAND, Server

DELETE_RECORDS = 21
NONE, OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC, POLICY_VIOLATION = 0, 1, 3, 17, 44
HIGH_WATERMARK = -1
# Apache Kafka's first retention check comes 30 s after its start.
PATIENCE_S = 60 if FOREIGN_COMMAND else 20


def create(server: Server, topic: str, **configs: str) -> None:
    """A topic with ten records."""
    admin = Admin(server.bootstrap)
    admin.create_topic(topic, 1, {name.replace("_", "."): value for name, value in configs.items()})
    wait_until(lambda: len(admin.partitions(topic)) == 1, 10, "the topic's leader")
    admin.close()
    producer = new_producer(server.bootstrap)
    for number in range(10):
        producer.send(topic, b"%d" % number, key=b"%d" % number, partition=0).get(timeout=20)
    producer.close()


def delete(server: Server, *wanted: tuple[str, int, int]) -> list[tuple[str, int, int, int]]:
    """DeleteRecords of (topic, partition, offset); returns (topic, partition, low watermark, error code),
    sorted."""
    topics = [string(topic) + array(struct.pack(">iq", index, offset)) for topic, index, offset in wanted]
    raw = Raw(server)
    reply = raw.answer_to(request(DELETE_RECORDS, 0, array(*topics) + struct.pack(">i", 5000)))
    raw.close()
    (count,) = struct.unpack_from(">i", reply, 8)
    at, found = 12, []
    for _ in range(count):
        (size,) = struct.unpack_from(">h", reply, at)
        topic = reply[at + 2 : at + 2 + size].decode()
        (partitions,) = struct.unpack_from(">i", reply, at + 2 + size)
        at += 6 + size
        for _ in range(partitions):
            found.append((topic, *struct.unpack_from(">iqh", reply, at)))
            at += 14
    return sorted(found)


def ends(server: Server, topic: str) -> tuple[int, int]:
    """The log start offset and the log end offset."""
    consumer = new_consumer(server.bootstrap)
    partition = TopicPartition(topic, 0)
    first, end = until_served(
        lambda: [
            asked([partition])[partition] for asked in (consumer.beginning_offsets, consumer.end_offsets)
        ]
    )
    consumer.close()
    return first, end


def read_from(server: Server, topic: str, offset: int, reset: str = "earliest") -> list[int]:
    """The offsets of the first records that a consumer gets."""
    consumer = new_consumer(server.bootstrap, auto_offset_reset=reset)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0), offset)
    try:
        polled = wait_until(lambda: consumer.poll(timeout_ms=1000), 20, "records")
        return [record.offset for records in polled.values() for record in records]
    finally:
        consumer.close()


def test_records_below_the_start_are_gone(server: Server, topic: str) -> None:
    create(server, topic)
    assert delete(server, (topic, 0, 4)) == [(topic, 0, 4, NONE)]
    assert ends(server, topic) == (4, 10)
    assert read_from(server, topic, 2) == [4, 5, 6, 7, 8, 9]
    try:
        read_from(server, topic, 2, reset="none")
        raise AssertionError("the offset is not there any more")
    except OffsetOutOfRangeError:
        pass
    assert delete(server, (topic, 0, 2)) == [(topic, 0, 4, NONE)]
    assert delete(server, (topic, 0, HIGH_WATERMARK)) == [(topic, 0, 10, NONE)]
    assert ends(server, topic) == (10, 10)


def test_what_is_refused(server: Server, topic: str) -> None:
    create(server, topic)
    create(server, f"{topic}-compacted", cleanup_policy="compact")
    create(server, f"{topic}-both", cleanup_policy="compact,delete")
    admin = Admin(server.bootstrap)
    until_served(lambda: admin.group_offsets("nobody"))  # this creates __consumer_offsets
    admin.close()
    assert delete(
        server,
        (topic, 0, 11),
        (f"{topic}-compacted", 0, 99),
        (f"{topic}-both", 0, 3),
        (f"{topic}-none", 0, 1),
        ("__consumer_offsets", 0, 99),
    ) == [
        ("__consumer_offsets", 0, -1, INVALID_TOPIC),
        (topic, 0, -1, OUT_OF_RANGE),
        (f"{topic}-both", 0, 3, NONE),
        (f"{topic}-compacted", 0, -1, POLICY_VIOLATION),
        (f"{topic}-none", 0, -1, UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert delete(server, (topic, 0, -2)) == [(topic, 0, -1, OUT_OF_RANGE)]
    assert delete(server, (topic, 1, 0)) == [(topic, 1, -1, UNKNOWN_TOPIC_OR_PARTITION)]
    assert delete(server, (topic, 0, 3), (topic, 0, 5)) == [(topic, 0, 5, NONE)]
    assert ends(server, topic) == (5, 10)


@pytest.mark.kshim_only("Apache Kafka writes log start offsets down once a minute")
def test_the_start_outlives_a_kill(own_server: Server, topic: str) -> None:
    create(own_server, topic)
    assert delete(own_server, (topic, 0, 4)) == [(topic, 0, 4, NONE)]
    own_server.kill()
    own_server.restart()
    assert ends(own_server, topic) == (4, 10)
    assert read_from(own_server, topic, 0) == [4, 5, 6, 7, 8, 9]


def test_old_records_go_and_the_log_goes_on(new_server: Callable[..., Server], topic: str) -> None:
    server = new_server("--set", "log.retention.check.interval.ms=500").start()
    create(server, f"{topic}-kept")
    create(server, topic, retention_ms="2000")
    assert ends(server, topic)[1] == 10
    wait_until(lambda: ends(server, topic) == (10, 10), PATIENCE_S, "an empty log")
    producer = new_producer(server.bootstrap)
    assert producer.send(topic, b"more", partition=0).get(timeout=20).offset == 10
    producer.close()
    assert ends(server, f"{topic}-kept") == (0, 10)


def test_a_log_grows_no_larger_than_it_may(new_server: Callable[..., Server], topic: str) -> None:
    server = new_server("--set", "log.retention.check.interval.ms=500").start()
    create(server, topic, retention_bytes="2000000", segment_bytes="1048576")
    producer = new_producer(server.bootstrap)
    value = bytes(20_000)
    for _ in range(300):
        last = producer.send(topic, value, partition=0)
    end = last.get(timeout=20).offset + 1
    producer.close()
    wait_until(lambda: ends(server, topic)[0] > 0, PATIENCE_S, "fewer records")
    deadline = time.monotonic() + PATIENCE_S
    while (kept := end - ends(server, topic)[0]) * len(value) > 2_000_000 + 1_048_576 + len(value):
        assert time.monotonic() < deadline, f"{kept} records are kept"
    assert kept * len(value) > 1_900_000
