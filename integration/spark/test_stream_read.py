"""Spark's streaming source, through all that may happen to a topic while a query runs.

Each test says which case of Spark's own suites for its Kafka source it stands for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from kafka import TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from integration.awaiting import wait_until
from integration.clients import Admin, new_consumer, new_producer, read_all
from integration.server import Server
from integration.spark.streams import create, kafka_stream, run_available, running, send, wait_for

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
BASE_MS = 1_700_000_000_000


def test_available_now_in_three_batches(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Trigger.AvailableNow: 15 records, at most 5 a batch, while metadata is asked for all the time."""
    create(admin, topic)
    send(server, topic, range(15))
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 5}
    stream = kafka_stream(spark, server, **options, kafka_metadata_max_age_ms=1)
    found = run_available(stream, tmp_path)
    assert [len(batch) for batch in found.batches] == [5, 5, 5]
    assert found.values == list(range(15))
    send(server, topic, range(15, 18))
    assert run_available(stream, tmp_path).values == [15, 16, 17]  # restart from the checkpoint


def test_max_offsets_per_trigger_is_split_by_size(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """maxOffsetsPerTrigger: 10 of 10, 10 and 100 records: 1, 1 and 8."""
    create(admin, topic, 3)
    for partition, count in enumerate((10, 10, 100)):
        send(server, topic, range(count), partition)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
    with running(kafka_stream(spark, server, **options), tmp_path) as (query, collected):
        wait_for(query, collected, 120)
    split = [[sum(row.partition == p for row in batch) for p in range(3)] for batch in collected.batches]
    assert split[0] == [1, 1, 8]
    assert [sum(column) for column in zip(*split, strict=True)] == [10, 10, 100]


def test_min_offsets_per_trigger(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """minOffsetsPerTrigger with maxTriggerDelay: nothing until enough is there."""
    create(admin, topic)
    send(server, topic, range(3))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    stream = kafka_stream(spark, server, **options, minOffsetsPerTrigger=8, maxTriggerDelay="5m")
    with running(stream, tmp_path) as (query, collected):
        wait_for(query, collected, 3)  # the first batch does not wait
        send(server, topic, range(3, 10))
        query.processAllAvailable()
        assert collected.values == [0, 1, 2]
        send(server, topic, range(10, 12))
        wait_for(query, collected, 12)
    assert [len(batch) for batch in collected.batches] == [3, 9]


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
@pytest.mark.parametrize("by", ["assign", "subscribe", "subscribePattern"])
def test_from_anywhere(
    spark: SparkSession,
    server: Server,
    admin: Admin,
    topic: str,
    tmp_path: Path,
    by: str,
    fail_on_data_loss: str,
) -> None:
    """{assign, subscribe, subscribePattern} x {earliest, latest, specific, both kinds of timestamps}."""
    create(admin, topic, 2)
    producer = new_producer(server.bootstrap)
    for number in range(20):
        producer.send(topic, b"%d" % number, partition=number % 2, timestamp_ms=BASE_MS + number)
    producer.close()
    names = {"assign": {topic: [0, 1]}, "subscribe": topic, "subscribePattern": f"{topic}.*"}
    source = {by: names[by], "failOnDataLoss": fail_on_data_loss}
    starts: list[tuple[dict[str, object], list[int]]] = [
        ({"startingOffsets": "earliest"}, list(range(20))),
        ({"startingOffsets": {topic: {"0": -2, "1": 9}}}, [*range(0, 20, 2), 19]),
        ({"startingTimestamp": BASE_MS + 15}, list(range(15, 20))),
        ({"startingOffsetsByTimestamp": {topic: {"0": BASE_MS + 17, "1": BASE_MS}}}, [18, *range(1, 20, 2)]),
        ({"startingOffsets": "latest"}, []),
    ]
    for number, (start, wanted) in enumerate(starts):
        found = run_available(kafka_stream(spark, server, **source, **start), tmp_path / str(number))
        assert found.values == sorted(wanted), start


def test_a_timestamp_that_no_record_has(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """startingOffsetsByTimestampStrategy error and latest."""
    create(admin, topic)
    send(server, topic, range(3))
    late = {"subscribe": topic, "startingTimestamp": 2**42}
    latest = kafka_stream(spark, server, **late, startingOffsetsByTimestampStrategy="latest")
    assert run_available(latest, tmp_path / "latest").rows == []
    error = kafka_stream(spark, server, **late, startingOffsetsByTimestampStrategy="error")
    with (
        pytest.raises(StreamingQueryException, match="No offset matched"),
        running(error, tmp_path / "error", availableNow=True) as (query, _),
    ):
        query.awaitTermination(60)


def test_partitions_added_while_it_runs(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    create(admin, topic, 1)
    send(server, topic, range(5))
    stream = kafka_stream(
        spark, server, subscribe=topic, startingOffsets="earliest", kafka_metadata_max_age_ms=200
    )
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
    """subscribing by pattern with topic deletions: what was deleted and made anew begins at 0 again."""
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
    """failOnDataLoss both ways, after records were deleted that the query had not read."""
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


def test_compacted_gaps(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Compaction leaves offsets without records: the query goes over them."""
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
    """How many records a consumer gets of the whole topic."""
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


def test_joins_and_unions_read_once(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """stream-stream self join; union of two bounded sources."""
    create(admin, topic)
    send(server, topic, range(6))
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest")
    numbers = stream.selectExpr("CAST(CAST(value AS STRING) AS INT) AS n")
    left, right = (numbers.selectExpr("n % 3 AS k", f"n AS {name}") for name in "ab")
    pairs = run_available(left.join(right, "k"), tmp_path / "join").rows
    wanted = [(a, b) for a in range(6) for b in range(6) if a % 3 == b % 3]
    assert sorted((row.a, row.b) for row in pairs) == wanted
    twice = run_available(stream.union(stream), tmp_path / "union")
    assert twice.values == sorted([*range(6), *range(6)])


def test_a_watermark_sees_the_times_of_records(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    create(admin, topic)
    producer = new_producer(server.bootstrap)
    for second in (0, 1, 2, 11, 12, 25):
        producer.send(topic, b"1", timestamp_ms=BASE_MS + 1000 * second)
    producer.close()
    counts = (
        kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=3)
        .withWatermark("timestamp", "1 second")
        .groupBy(fn.window("timestamp", "10 seconds"))
        .count()
        .selectExpr("unix_millis(window.start) AS start", "count")
    )
    rows = run_available(counts, tmp_path).rows
    assert [((row.start - BASE_MS) // 1000, row["count"]) for row in rows] == [(0, 3), (10, 2)]


def test_null_keys_and_values_and_headers(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """SPARK-27494; includeHeaders with keys that come twice."""
    create(admin, topic)
    producer = new_producer(server.bootstrap)
    producer.send(topic, None, key=b"k")
    producer.send(topic, b"v", headers=[("a", b"1"), ("a", b"2")])
    producer.close()
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest", includeHeaders="true")
    first, second = run_available(stream, tmp_path).rows
    assert (first.key, first.value, first.headers) == (b"k", None, None)
    assert (second.key, second.value, [tuple(header) for header in second.headers]) == (
        None,
        b"v",
        [("a", bytearray(b"1")), ("a", bytearray(b"2"))],
    )


def test_min_partitions(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """SPARK-30656: several consumers on one partition."""
    create(admin, topic)
    send(server, topic, range(100))
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest", minPartitions=6)
    parts = run_available(stream.withColumn("part", fn.spark_partition_id()), tmp_path)
    assert parts.values == list(range(100))
    assert len({row.part for row in parts.rows}) >= 6


def test_progress_tells_how_far_behind(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Metrics of the source: min, max and avgOffsetsBehindLatest."""
    create(admin, topic, 2)
    send(server, topic, range(10), 0)
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=4)
    with running(stream, tmp_path) as (query, collected):
        wait_for(query, collected, 10)
        first = next(progress for progress in query.recentProgress if progress["numInputRows"])
    metrics = first["sources"][0]["metrics"]
    assert (metrics["minOffsetsBehindLatest"], metrics["maxOffsetsBehindLatest"]) == ("0", "6")


def test_offsets_fetched_through_a_group(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Deprecated offset fetching: the driver is a member of a group whose name one may choose."""
    create(admin, topic, 2)
    send(server, topic, range(10))
    stream = kafka_stream(
        spark, server, subscribe=topic, startingOffsets="earliest", groupIdPrefix="spark-in-a-group"
    )
    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    try:
        with running(stream, tmp_path) as (query, collected):
            wait_for(query, collected, 10)
            groups = [group for group in admin.list_groups() if group.startswith("spark-in-a-group")]
            assert groups
            assert admin.describe_group(groups[0]).state == "Stable"
    finally:
        spark.conf.unset("spark.sql.streaming.kafka.useDeprecatedOffsetFetching")
    assert collected.values == list(range(10))


def test_committed_records_only(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """read_committed: what is aborted or open is not seen; a batch of nothing else goes on."""
    create(admin, topic)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    committed = kafka_stream(spark, server, **options, kafka_isolation_level="read_committed")
    uncommitted = kafka_stream(spark, server, **options, kafka_isolation_level="read_uncommitted")
    producer = new_producer(server.bootstrap, transactional_id=topic, enable_idempotence=True)
    producer.init_transactions()

    def transact(numbers: range, end: Callable[[], None] | None) -> None:
        producer.begin_transaction()
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=0)
        producer.flush()
        if end is not None:
            end()

    transact(range(5), producer.commit_transaction)
    transact(range(5, 10), producer.abort_transaction)
    assert run_available(committed, tmp_path / "committed").values == [0, 1, 2, 3, 4]
    transact(range(10, 13), producer.abort_transaction)
    assert run_available(committed, tmp_path / "committed").rows == []  # only what was aborted
    transact(range(13, 15), None)
    assert run_available(committed, tmp_path / "committed").rows == []  # still open
    assert run_available(uncommitted, tmp_path / "uncommitted").values == list(range(15))
    producer.commit_transaction()
    assert run_available(committed, tmp_path / "committed").values == [13, 14]
    assert run_available(uncommitted, tmp_path / "uncommitted").rows == []  # a marker is the last record
    producer.close()


def test_an_idle_stream_stops(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    create(admin, topic)
    with running(kafka_stream(spark, server, subscribe=topic), tmp_path) as (query, _):
        query.processAllAvailable()
        query.stop()
        assert not query.isActive


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "subscribe"),
        ({"subscribe": "t", "assign": '{"t":[0]}'}, "(?i)only one|multiple"),
        ({"subscribe": ""}, "(?i)no topics"),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":-1'}, "(?i)json|expected"),
        ({"subscribe": "t", "endingOffsets": "latest"}, "(?i)ending offset"),
    ],
)
def test_bad_options(
    spark: SparkSession, server: Server, tmp_path: Path, options: dict[str, str], why: str
) -> None:
    with (
        pytest.raises(Exception, match=why),
        running(kafka_stream(spark, server, **options), tmp_path, availableNow=True) as (query, _),
    ):
        query.awaitTermination(60)


def test_many_topics_come_and_grow(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """The stress test of Spark's source: topics made, partitions added, records sent, in no order."""
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


def copied(
    spark: SparkSession,
    server: Server,
    admin: Admin,
    topic: str,
    checkpoint: Path,
    mode: str,
    **trigger: str,
) -> list[int]:
    """What came through a query from topic to topic, as it ran: 50 numbers, in ascending order."""
    source, sink = f"{topic}-in", f"{topic}-out"
    create(admin, source, 1)
    create(admin, sink, 1)
    query = (
        kafka_stream(spark, server, subscribe=source, startingOffsets="earliest")
        .selectExpr("value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", str(checkpoint))
        .outputMode(mode)
        .trigger(**trigger)
        .start()
    )
    try:
        send(server, source, range(50))
        wait_until(lambda: _end(server, sink) >= 50, 90, "50 records in the sink")
    finally:
        query.stop()
    return _values(server, sink)


def test_continuous(spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path) -> None:
    """The continuous trigger: long-lived consumers, one for each partition."""
    found = copied(spark, server, admin, topic, tmp_path, "append", continuous="1 second")
    assert found == list(range(50))


@pytest.mark.skipif(VERSION < (4, 1), reason="PySpark has real-time mode since 4.1")
def test_real_time(spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path) -> None:
    """Real-time mode: records come through within a batch that lasts for seconds."""
    found = copied(spark, server, admin, topic, tmp_path, "update", realTime="5 seconds")
    assert sorted(set(found)) == list(range(50))


def _end(server: Server, topic: str) -> int:
    consumer = new_consumer(server.bootstrap)
    try:
        return int(consumer.end_offsets([TopicPartition(topic, 0)])[TopicPartition(topic, 0)])
    finally:
        consumer.close()


def _values(server: Server, topic: str) -> list[int]:
    return sorted(int(record.value) for record in read_all(server.bootstrap, topic, _end(server, topic)))


def test_through_five_kills_of_the_server(
    spark: SparkSession, new_server: Callable[..., Server], topic: str, tmp_path: Path
) -> None:
    """Exactly the produced records come out, though the server is killed again and again."""
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
