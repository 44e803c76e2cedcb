"""Helpers for running queries: what a test asks of a stream, and how it waits for the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_producer
from integration.support.server import Server

TIMEOUT_S = 90

_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
V1, V2, DEPRECATED = "V1", "V2", "deprecated"
_CONF = {
    V1: {
        "spark.sql.sources.useV1SourceList": "kafka",
        "spark.sql.streaming.disabledV2MicroBatchReaders": _PROVIDER,
    },
    V2: {
        "spark.sql.sources.useV1SourceList": "",
        "spark.sql.streaming.disabledV2MicroBatchReaders": "",
    },
    DEPRECATED: {"spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true"},
}
"""How Spark's connector reads: through the old or the new interface for sources, and with partitions' ends
from an admin client or, deprecated, from a consumer."""
WAYS = tuple(_CONF)


@contextmanager
def through(spark: SparkSession, way: str) -> Iterator[None]:
    """Lets Spark read in one of the WAYS."""
    before = {name: spark.conf.get(name, None) for name in _CONF[way]}
    for name, value in _CONF[way].items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def create(admin: Admin, topic: str, partitions: int = 1, **configs: str) -> None:
    admin.create_topic(topic, partitions, {name.replace("_", "."): value for name, value in configs.items()})
    wait_until(lambda: len(admin.partitions(topic)) == partitions, 10, "the topic's leaders")


def send(server: Server, topic: str, values: range, partition: int | None = None, **options: Any) -> None:
    """Send the text of each number, to one partition or spread over all."""
    producer = new_producer(server.bootstrap, **options)
    for value in values:
        producer.send(topic, b"%d" % value, partition=partition)
    producer.close()


def kafka_stream(spark: SparkSession, server: Server, **options: object) -> DataFrame:
    """`readStream.format("kafka")`; each "_" in an option's name becomes "."."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", server.bootstrap)
    for name, value in options.items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        reader = reader.option(name.replace("_", "."), text)
    return reader.load()


class Collected:
    """All output of a query so far: each micro-batch, in order."""

    def __init__(self) -> None:
        self.batches: list[list[Row]] = []

    def add(self, batch: DataFrame, _: int) -> None:
        rows = batch.collect()
        if rows:
            self.batches.append(rows)

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]

    @property
    def values(self) -> list[int]:
        """The records' values as numbers, in ascending order."""
        return sorted(int(row.value) for row in self.rows)


@contextmanager
def running(frame: DataFrame, checkpoint: Path, **trigger: Any) -> Iterator[tuple[StreamingQuery, Collected]]:
    """A query that collects its output, until the block ends."""
    collected = Collected()
    writer = frame.writeStream.foreachBatch(collected.add).option("checkpointLocation", str(checkpoint))
    if trigger:
        writer = writer.trigger(**trigger)
    query = writer.start()
    try:
        yield query, collected
    finally:
        query.stop()


def run_available(frame: DataFrame, checkpoint: Path) -> Collected:
    """Run a query over all that is there now."""
    with running(frame, checkpoint, availableNow=True) as (query, collected):
        assert query.awaitTermination(TIMEOUT_S)
        assert query.exception() is None
    return collected


def wait_for(query: StreamingQuery, collected: Collected, count: int) -> None:
    """Wait until `count` rows are there; AssertionError at once if the query has failed."""

    def there() -> bool:
        assert query.exception() is None, query.exception()
        return len(collected.rows) >= count

    wait_until(there, TIMEOUT_S, lambda: f"{len(collected.rows)} of {count} rows")
