"""Topics, partitions, records, servers and leaders come and go while a query runs."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from integration.spark.streams import Collected, create, kafka_stream, run_available, running, send, wait_for
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer
from integration.support.server import Server

BASE_MS = 1_700_000_000_000


@pytest.mark.parametrize("by", ["subscribe", "subscribePattern"])
@pytest.mark.parametrize("start", ["earliest", "timestamp", "timestamps"])
def test_partitions_added_while_it_runs(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path, by: str, start: str
) -> None:
    create(admin, topic, 1)
    send(server, topic, range(5))
    starts: dict[str, dict[str, object]] = {
        "earliest": {"startingOffsets": "earliest"},
        "timestamp": {"startingTimestamp": BASE_MS},
        "timestamps": {"startingOffsetsByTimestamp": {topic: {"0": BASE_MS}}},
    }
    stream = kafka_stream(spark, server, **{by: topic}, **starts[start], kafka_metadata_max_age_ms=200)
    with running(stream, tmp_path) as (query, collected):
        wait_for(query, collected, 5)
        admin.add_partitions(topic, 3)
        wait_until(lambda: len(admin.partitions(topic)) == 3, 10, "the new partitions")
        send(server, topic, range(5, 10), 2)
        wait_for(query, collected, 10)
    assert collected.values == list(range(10))


def test_topics_of_a_pattern_come_and_go(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Subscribing by pattern with topic deletions: a topic that was deleted and made again starts at 0."""
    first, second = f"{topic}-a", f"{topic}-b"
    create(admin, first)
    send(server, first, range(3))
    stream = kafka_stream(
        spark, server, subscribePattern=f"{topic}-.*", startingOffsets="earliest", failOnDataLoss="false"
    )
    assert run_available(stream, tmp_path).values == [0, 1, 2]
    create(admin, second)
    send(server, second, range(10, 14))
    assert run_available(stream, tmp_path).values == [10, 11, 12, 13]
    admin.delete_topic(second)
    assert run_available(stream, tmp_path).rows == []
    create(admin, second)
    send(server, second, range(20, 22))
    assert run_available(stream, tmp_path).values == [20, 21]


def test_a_topic_deleted_while_it_runs(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    create(admin, topic)
    send(server, topic, range(3))
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest")
    with running(stream, tmp_path) as (query, collected):
        wait_for(query, collected, 3)
        admin.delete_topic(topic)
        wait_until(lambda: query.exception() is not None, 90, "the query's failure")
        failed = "UnknownTopicOrPartition|data may have been (missed|lost)|(?i:data loss)"
        assert re.search(failed, str(query.exception()))


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_records_that_are_gone(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path, fail_on_data_loss: bool
) -> None:
    """failOnDataLoss true and false, after records were deleted that the query had not read."""
    create(admin, topic)
    send(server, topic, range(5))
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": str(fail_on_data_loss).lower(),
    }
    stream = kafka_stream(spark, server, **options)
    assert run_available(stream, tmp_path).values == list(range(5))
    send(server, topic, range(5, 20))
    admin.client.delete_records({TopicPartition(topic, 0): 10})
    if fail_on_data_loss:
        with (
            pytest.raises(StreamingQueryException, match=r"(?i)data was lost|data loss|failOnDataLoss"),
            running(stream, tmp_path, availableNow=True) as (query, _),
        ):
            query.awaitTermination(90)
    else:
        assert run_available(stream, tmp_path).values == list(range(10, 20))


def ageing(new_server: Callable[..., Server], topic: str, expired: int, fresh: int) -> Server:
    """A server on which `expired` of the topic's numbers have expired, and the next `fresh` are there."""
    server = new_server("--set", "log.retention.check.interval.ms=100").start()
    admin = Admin(server.bootstrap)
    create(admin, topic, 1, retention_ms="3600000")
    producer = new_producer(server.bootstrap, linger_ms=5)
    for number in range(expired):
        producer.send(topic, b"%d" % number, timestamp_ms=BASE_MS)
    producer.flush()
    wait_until(lambda: _start(server, topic) == expired, 30, "expired records")
    for number in range(expired, expired + fresh):
        producer.send(topic, b"%d" % number)
    producer.close()
    admin.close()
    return server


def _start(server: Server, topic: str) -> int:
    consumer = new_consumer(server.bootstrap)
    try:
        return int(consumer.beginning_offsets([TopicPartition(topic, 0)])[TopicPartition(topic, 0)])
    finally:
        consumer.close()


def test_retention_takes_what_was_not_read(
    spark: SparkSession, new_server: Callable[..., Server], topic: str, tmp_path: Path, way: str
) -> None:
    """failOnDataLoss=false from offset 0 on, in batch and stream: all that is left, nothing twice."""
    server = ageing(new_server, topic, 40, 20)
    options = {"subscribe": topic, "startingOffsets": {topic: {"0": 0}}, "failOnDataLoss": "false"}
    stream = kafka_stream(spark, server, **options, maxOffsetsPerTrigger=25)
    with running(stream, tmp_path / "checkpoint") as (query, collected):
        wait_for(query, collected, 20)
    assert collected.values == list(range(40, 60))
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", server.bootstrap)
    reader = reader.option("subscribe", topic).option("startingOffsets", f'{{"{topic}": {{"0": 0}}}}')
    rows = reader.option("failOnDataLoss", "false").load().select("value").collect()
    assert sorted(int(row.value) for row in rows) == list(range(40, 60))


def test_topics_deleted_and_made_anew_at_any_time(
    spark: SparkSession, new_server: Callable[..., Server], topic: str, tmp_path: Path
) -> None:
    """The stress test of failOnDataLoss=false: no failure, nothing twice, and the last records are read."""
    # Else a consumer that still asks for a deleted topic would create it.
    server = new_server("--set", "auto.create.topics.enable=false").start()
    admin = Admin(server.bootstrap)
    chance = random.Random(11)
    names = [f"{topic}-{letter}" for letter in "abc"]
    for name in names:
        create(admin, name)
    stream = kafka_stream(
        spark,
        server,
        subscribePattern=f"{topic}-.*",
        startingOffsets="earliest",
        failOnDataLoss="false",
        kafka_metadata_max_age_ms=1,
        kafka_request_timeout_ms=3000,
        kafka_default_api_timeout_ms=5000,
        fetchOffset_retryIntervalMs=3000,
    )
    sent = 0
    with running(stream, tmp_path) as (query, collected):
        for _ in range(30):
            name = chance.choice(names)
            if chance.random() < 0.2:
                admin.delete_topic(name)
                wait_until(lambda name=name: name not in admin.list_topics(), 10, "the deletion")
                create(admin, name)
            else:
                send(server, name, range(sent, sent + 10))
                sent += 10
        _read_on(server, topic, admin, query, collected)
    assert max(Counter(int(row.value) for row in collected.rows).values()) == 1
    admin.close()


def _read_on(server: Server, topic: str, admin: Admin, query: StreamingQuery, collected: Collected) -> None:
    """Wait until the query has read a record of a topic that is never deleted."""
    create(admin, f"{topic}-last")
    send(server, f"{topic}-last", range(10**6, 10**6 + 1))

    def there() -> bool:
        failure = query.exception()
        assert failure is None, failure
        return 10**6 in collected.values

    wait_until(there, 60, "the last record")


def test_compacted_gaps(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Compaction leaves offsets without records: the query skips them."""
    create(admin, topic, 1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    producer = new_producer(server.bootstrap, linger_ms=5)
    for number in range(12_000):
        producer.send(topic, b"%d" % number, key=b"%d" % (number % 7))
    producer.flush()
    wait_until(lambda: _records(server, topic) < 12_000, 60, "a compacted log")
    producer.send(topic, b"12000", key=b"another").get(timeout=20)
    producer.close()
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 2500}
    found = run_available(kafka_stream(spark, server, **options), tmp_path)
    assert len(found.rows) < 12_000
    last = {int(row.value) % 7: int(row.value) for row in found.rows if int(row.value) < 12_000}
    assert last == {number % 7: number for number in range(11_993, 12_000)}
    assert found.values[-1] == 12_000


def _records(server: Server, topic: str) -> int:
    """The number of records that a consumer gets from the whole topic."""
    consumer = new_consumer(server.bootstrap)
    try:
        at = TopicPartition(topic, 0)
        consumer.assign([at])
        consumer.seek_to_beginning(at)
        end = consumer.end_offsets([at])[at]
        count = 0
        while consumer.position(at) < end:
            count += sum(len(records) for records in consumer.poll(timeout_ms=1000).values())
        return count
    finally:
        consumer.close()


def test_many_topics_come_and_grow(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """The stress test of Spark's source: topics made, partitions added, records sent, in random order."""
    chance = random.Random(7)
    partitions: dict[str, int] = {}
    sent = 0
    stream = kafka_stream(
        spark, server, subscribePattern=f"{topic}-.*", startingOffsets="earliest", kafka_metadata_max_age_ms=1
    )
    create(admin, f"{topic}-0")
    partitions[f"{topic}-0"] = 1
    with running(stream, tmp_path) as (query, collected):
        for step in range(25):
            name = chance.choice(list(partitions))
            match chance.choice(["create", "grow", "send", "send", "send"]):
                case "create":
                    partitions[f"{topic}-{step + 1}"] = 1
                    create(admin, f"{topic}-{step + 1}")
                case "grow":
                    partitions[name] += 1
                    admin.add_partitions(name, partitions[name])
                case _:
                    send(server, name, range(sent, sent + 20))
                    sent += 20
        wait_for(query, collected, sent)
    assert collected.values == list(range(sent))


def test_through_five_kills_of_the_server(
    spark: SparkSession, new_server: Callable[..., Server], topic: str, tmp_path: Path
) -> None:
    """Exactly the produced records come out, although the server is killed again and again."""
    server = new_server().start()
    admin = Admin(server.bootstrap)
    create(admin, topic, 2)
    admin.close()
    stream = kafka_stream(
        spark, server, subscribe=topic, startingOffsets="earliest", kafka_reconnect_backoff_max_ms=200
    )
    with running(stream, tmp_path / "checkpoint") as (query, collected):
        producer = new_producer(server.bootstrap, enable_idempotence=True)
        for kill in range(5):
            futures = [
                producer.send(topic, b"%d" % n, partition=n % 2) for n in range(kill * 100, kill * 100 + 100)
            ]
            wait_until(lambda: bool(collected.rows), 90, "the first records")
            server.kill()
            server.restart()
            for future in futures:
                future.get(timeout=60)
        producer.close()
        wait_for(query, collected, 500)
        query.processAllAvailable()
    assert collected.values == list(range(500))


def test_leaders_move(
    spark: SparkSession, new_server: Callable[..., Server], topic: str, tmp_path: Path
) -> None:
    server = new_server("--brokers", "2").start()
    admin = Admin(server.bootstrap)
    create(admin, topic, 2)
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest")
    with running(stream, tmp_path / "checkpoint") as (query, collected):
        for turn in range(3):
            send(server, topic, range(turn * 10, turn * 10 + 10))
            wait_for(query, collected, turn * 10 + 10)
            for partition, leader in admin.partitions(topic).items():
                server.steer("move-leader", topic, partition, "--to", 3 - leader)
    admin.close()
    assert collected.values == list(range(30))
