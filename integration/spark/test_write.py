"""Spark's sink, and a stream from topic to topic, read back by kafka-python."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from integration.awaiting import wait_until
from integration.clients import Admin, new_producer, read_all
from integration.server import Server


def create(admin: Admin, topic: str, partitions: int) -> None:
    admin.create_topic(topic, partitions)
    wait_until(lambda: len(admin.partitions(topic)) == partitions, 10, "the topic's leaders")


def test_batch_sink(spark: SparkSession, server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, 2)
    frame = spark.range(500).selectExpr(
        "CAST(id AS STRING) AS key",
        "CAST(id * 10 AS STRING) AS value",
        "CAST(id % 2 AS INT) AS partition",
        "array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers",
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", server.bootstrap).option(
        "topic", topic
    ).option("includeHeaders", "true").save()
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
