"""Spark's sink, and a stream from topic to topic, read back by kafka-python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from integration.spark.streams import V1, V2, create, kafka_stream, send
from integration.support.clients import Admin, new_producer, read_all
from integration.support.server import Server


@pytest.mark.parametrize("way", [V1, V2], indirect=True)
def test_batch_sink(spark: SparkSession, server: Server, admin: Admin, topic: str, way: str) -> None:
    create(admin, topic, 2)
    frame = spark.range(500).selectExpr(
        "CAST(id AS STRING) AS key",
        "CAST(id * 10 AS STRING) AS value",
        "CAST(id % 2 AS INT) AS partition",
        "array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers",
    )
    write(frame, server, topic=topic, includeHeaders="true")
    records = read_all(server.bootstrap, topic, 500)
    assert sorted((int(r.key), int(r.value), r.partition) for r in records) == [
        (n, 10 * n, n % 2) for n in range(500)
    ]
    assert {tuple(r.headers) for r in records} == {(("h", b"x"),)}


def test_stream_from_topic_to_topic(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    """Five micro-batches, then a restart from the checkpoint for what came later."""
    source, sink = f"{topic}-in", f"{topic}-out"
    create(admin, source, 2)
    create(admin, sink, 1)
    producer = new_producer(server.bootstrap)

    def produce(numbers: range) -> None:
        for number in numbers:
            producer.send(source, str(number).encode(), partition=number % 2)
        producer.flush()

    def run() -> int:
        query = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", server.bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 20)
            .load()
            .selectExpr("upper(concat('n', CAST(value AS STRING))) AS value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", server.bootstrap)
            .option("topic", sink)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(90)
        assert query.exception() is None
        return len([progress for progress in query.recentProgress if progress["numInputRows"]])

    produce(range(100))
    assert run() == 5
    produce(range(100, 110))
    assert run() == 1
    producer.close()
    values = [r.value.decode() for r in read_all(server.bootstrap, sink, 110)]
    assert sorted(values) == sorted(f"N{n}" for n in range(110))


def write(frame: DataFrame, server: Server, **options: object) -> None:
    writer = frame.write.format("kafka").mode("append")
    writer = writer.option("kafka.bootstrap.servers", server.bootstrap)
    for name, value in options.items():
        writer = writer.option(name.replace("_", "."), str(value))
    writer.save()


def test_the_topic_of_each_row(spark: SparkSession, server: Server, admin: Admin, topic: str) -> None:
    """The topic column chooses; the option wins over it."""
    first, second = f"{topic}-a", f"{topic}-b"
    create(admin, first, 1)
    create(admin, second, 1)
    rows = spark.createDataFrame([(first, "1"), (second, "2")], "topic string, value string")
    write(rows, server)
    write(rows, server, topic=second)
    assert [r.value for r in read_all(server.bootstrap, first, 1)] == [b"1"]
    assert sorted(r.value for r in read_all(server.bootstrap, second, 3)) == [b"1", b"2", b"2"]


def test_who_chooses_the_partition(spark: SparkSession, server: Server, admin: Admin, topic: str) -> None:
    """A partition column wins over a custom partitioner, and that over the key's hash."""
    by_key, in_turns, named = (f"{topic}-{name}" for name in ("key", "turns", "named"))
    for name in (by_key, in_turns, named):
        create(admin, name, 3)
    same_key = spark.range(0, 9, 1, numPartitions=1).selectExpr("'k' AS key", "CAST(id AS STRING) AS value")
    round_robin = {"kafka_partitioner_class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"}
    write(same_key, server, topic=by_key)
    write(same_key, server, topic=in_turns, **round_robin)
    write(same_key.withColumn("partition", fn.lit(2)), server, topic=named, **round_robin)
    found = {
        name: {record.partition for record in read_all(server.bootstrap, name, 9)}
        for name in (by_key, in_turns, named)
    }
    assert len(found[by_key]) == 1
    assert len(found[in_turns]) > 1
    assert found[named] == {2}


def test_rows_that_cannot_be_written(
    spark: SparkSession, new_server: Callable[..., Server], topic: str
) -> None:
    """A null topic, a wrong schema, and a topic that does not exist and is not created automatically."""
    server = new_server("--set", "auto.create.topics.enable=false").start()
    nowhere = spark.createDataFrame([(None, "1")], "topic string, value string")
    with pytest.raises(Exception, match=r"(?i)null topic"):
        write(nowhere, server)
    numbers = spark.createDataFrame([(1, "a")], "value int, key string")
    with pytest.raises(PySparkException, match=r"(?i)value.*(string|binary)"):
        write(numbers, server, topic=topic)
    text = spark.createDataFrame([("1",)], "value string")
    with pytest.raises(Exception, match=f"(?i)topic {topic} not present in metadata"):
        write(text, server, topic=topic, kafka_max_block_ms=3000)
    admin = Admin(server.bootstrap)
    assert topic not in admin.list_topics()
    admin.close()


def test_more_than_the_producer_s_buffer(
    spark: SparkSession, server: Server, admin: Admin, topic: str
) -> None:
    """1000 records of 15 KB go through a buffer of 16 KB."""
    create(admin, topic, 1)
    keys_and_values = "CAST(id AS STRING) AS key", "repeat('x', 15000) AS value"
    rows = spark.range(0, 1000, 1, numPartitions=1).selectExpr(*keys_and_values)
    write(rows, server, topic=topic, kafka_buffer_memory=16384)
    records = read_all(server.bootstrap, topic, 1000)
    assert [int(record.key) for record in records] == list(range(1000))
    assert {len(record.value) for record in records} == {15000}


def test_foreach_batch_and_the_sink_s_progress(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path
) -> None:
    source, sink = f"{topic}-in", f"{topic}-out"
    create(admin, source, 1)
    create(admin, sink, 1)
    send(server, source, range(20))
    stream = kafka_stream(spark, server, subscribe=source, startingOffsets="earliest").select("value")

    def copy(batch: DataFrame, _: int) -> None:
        write(batch, server, topic=sink)

    query = (
        stream.writeStream.foreachBatch(copy)
        .option("checkpointLocation", str(tmp_path / "each"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90)
    assert sorted(int(r.value) for r in read_all(server.bootstrap, sink, 20)) == list(range(20))
    query = (
        stream.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", str(tmp_path / "sink"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90)
    assert query.lastProgress["sink"]["numOutputRows"] == 20
