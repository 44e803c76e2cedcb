"""Spark's streaming source: where it begins, how much it takes at a time, what a record is.

Each test names the case of Spark's own suites for its Kafka source that it covers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pyspark
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from integration.spark.streams import (
    DEPRECATED,
    create,
    kafka_stream,
    run_available,
    running,
    send,
    through,
    wait_for,
)
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_producer
from integration.support.server import Server

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
    """maxOffsetsPerTrigger=10: partitions with 10, 10 and 100 records give 1, 1 and 8."""
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
    """minOffsetsPerTrigger with maxTriggerDelay: no batch until enough records are there."""
    create(admin, topic)
    send(server, topic, range(3))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    stream = kafka_stream(spark, server, **options, minOffsetsPerTrigger=9, maxTriggerDelay="5m")
    with running(stream, tmp_path) as (query, collected):
        wait_for(query, collected, 3)  # the first batch does not wait
        send(server, topic, range(3, 10))
        query.processAllAvailable()
        assert collected.values == [0, 1, 2]
        send(server, topic, range(10, 12))
        wait_for(query, collected, 12)
    assert [len(batch) for batch in collected.batches] == [3, 9]


def test_a_limit_beyond_all_offsets(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """SPARK-26718: the limit is the largest possible number."""
    create(admin, topic)
    send(server, topic, range(5))
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 2**63 - 1}
    assert [
        len(batch) for batch in run_available(kafka_stream(spark, server, **options), tmp_path).batches
    ] == [5]


def test_once_knows_no_limit(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Trigger.Once takes everything in one batch; a restart with another trigger continues after it."""
    create(admin, topic)
    send(server, topic, range(7))
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 2}
    stream = kafka_stream(spark, server, **options)
    with running(stream, tmp_path, once=True) as (query, collected):
        assert query.awaitTermination(90)
    assert [len(batch) for batch in collected.batches] == [7]
    send(server, topic, range(7, 10))
    assert [len(batch) for batch in run_available(stream, tmp_path).batches] == [2, 1]


def test_not_too_little_and_not_too_much(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Both limits at once: too few records wait until maxTriggerDelay is over."""
    create(admin, topic)
    send(server, topic, range(3))
    limits = {"minOffsetsPerTrigger": 8, "maxOffsetsPerTrigger": 15, "maxTriggerDelay": "3s"}
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest", **limits)
    with running(stream, tmp_path) as (query, collected):
        wait_for(query, collected, 3)
        producer = new_producer(server.bootstrap, linger_ms=60_000)  # all in one batch
        for number in range(3, 23):
            producer.send(topic, b"%d" % number)
        producer.flush()
        wait_for(query, collected, 23)
        producer.close()
    assert [len(batch) for batch in collected.batches] == [3, 15, 5]


def test_where_it_began_is_kept(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """The initial offsets are in the checkpoint even before there is a record."""
    create(admin, topic)
    send(server, topic, range(3))
    with running(kafka_stream(spark, server, subscribe=topic), tmp_path) as (query, _):  # from its end
        wait_until(lambda: (tmp_path / "sources" / "0" / "0").exists(), 60, "the initial offsets")
        # A query that is stopped before may leave what Spark 4.2 does not begin with.
        wait_until(lambda: query.status["message"] == "Waiting for data to arrive", 60, "the records")
    send(server, topic, range(3, 5))
    earliest = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest")
    assert run_available(earliest, tmp_path).values == [3, 4]


def test_a_checkpoint_of_spark_2_4(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """It does not know includeHeaders, whose default leaves the column out."""
    create(admin, topic)
    send(server, topic, range(5))
    told = {"batchWatermarkMs": 0, "batchTimestampMs": BASE_MS, "conf": {"spark.sql.shuffle.partitions": "2"}}
    files = {
        "metadata": json.dumps({"id": str(uuid4())}),
        "sources/0/0": f'\0v1\n{{"{topic}":{{"0":0}}}}',
        "offsets/0": f'v1\n{json.dumps(told)}\n{{"{topic}":{{"0":3}}}}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest")
    assert "headers" not in stream.columns
    assert run_available(stream, tmp_path).values == [3, 4]


@pytest.mark.skipif(VERSION < (4, 0), reason="PySpark has maxRecordsPerPartition since 4.0")
def test_as_many_records_a_task_as_wanted(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    create(admin, topic)
    send(server, topic, range(10))
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxRecordsPerPartition": 3}
    stream = kafka_stream(spark, server, **options).withColumn("part", fn.spark_partition_id())
    found = run_available(stream, tmp_path)
    assert found.values == list(range(10))
    assert len({row.part for row in found.rows}) == 4


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
@pytest.mark.parametrize("by", ["assign", "subscribe", "subscribePattern"])
def test_from_anywhere(
    spark: SparkSession,
    server: Server,
    admin: Admin,
    topic: str,
    tmp_path: Path,
    way: str,
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
    ]
    if way != DEPRECATED:  # its consumer may at first take the beginning for the end (KAFKA-7703)
        starts.append(({"startingOffsets": "latest"}, []))
    for number, (start, wanted) in enumerate(starts):
        stream = kafka_stream(spark, server, **source, **start)
        with running(stream, tmp_path / str(number)) as (query, found):
            wait_for(query, found, len(wanted))
            query.processAllAvailable()
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


def test_joins_and_unions_read_once(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Stream-stream self join; union of two bounded sources."""
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


def test_progress_shows_how_far_behind_a_query_is(
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


@pytest.mark.parametrize("option", ["groupIdPrefix", "kafka_group_id"])
def test_offsets_fetched_through_a_group(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path, option: str
) -> None:
    """Deprecated offset fetching: the driver joins a group, whose name can be set."""
    create(admin, topic, 2)
    send(server, topic, range(10))
    name = f"{topic}-in-a-group"
    stream = kafka_stream(spark, server, subscribe=topic, startingOffsets="earliest", **{option: name})
    with through(spark, DEPRECATED), running(stream, tmp_path) as (query, collected):
        wait_for(query, collected, 10)
        (group,) = (group for group in admin.list_groups() if group.startswith(name))
        assert (group == name) == (option == "kafka_group_id")
        assert admin.describe_group(group).state == "Stable"
    assert collected.values == list(range(10))


def test_committed_records_only(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """read_committed: aborted and open transactions are not read; a batch of nothing else goes on."""
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
    assert run_available(committed, tmp_path / "committed").rows == []  # only aborted records
    transact(range(13, 15), None)
    assert run_available(committed, tmp_path / "committed").rows == []  # still open
    assert run_available(uncommitted, tmp_path / "uncommitted").values == list(range(15))
    producer.commit_transaction()
    assert run_available(committed, tmp_path / "committed").values == [13, 14]
    assert run_available(uncommitted, tmp_path / "uncommitted").rows == []  # the last record is a marker
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
