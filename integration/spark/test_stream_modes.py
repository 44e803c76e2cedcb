"""Queries without micro-batches: the continuous trigger and real-time mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from integration.spark.streams import create, kafka_stream, send
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, count_records, new_producer, read_all
from integration.support.server import Server

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
BASE_MS = 1_700_000_000_000
CONTINUOUS = {"mode": "append", "continuous": "1 second"}
REAL_TIME = {"mode": "update", "realTime": "5 seconds"}

has_real_time = pytest.mark.skipif(VERSION < (4, 1), reason="PySpark has real-time mode since 4.1")


def into(
    server: Server, sink: str, frame: DataFrame, checkpoint: Path, mode: str, **trigger: Any
) -> StreamingQuery:
    """A query that writes its values to a topic."""
    writer = frame.select("value").writeStream.format("kafka").outputMode(mode).trigger(**trigger)
    writer = writer.option("kafka.bootstrap.servers", server.bootstrap).option("topic", sink)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def wait_for(query: StreamingQuery, server: Server, sink: str, wanted: set[int]) -> None:
    """Wait until the topic has these numbers; AssertionError at once if the query has failed."""

    def there() -> bool:
        assert query.exception() is None, query.exception()
        return wanted <= set(_values(server, sink))

    wait_until(there, 90, lambda: f"{len(_values(server, sink))} of {len(wanted)} numbers")


def _values(server: Server, topic: str) -> list[int]:
    count = count_records(server.bootstrap, topic)
    return sorted(int(record.value) for record in read_all(server.bootstrap, topic, count))


@pytest.mark.parametrize("start", ["earliest", "latest", "offsets", "timestamp", "timestamps"])
@pytest.mark.parametrize("by", ["assign", "subscribe", "subscribePattern"])
def test_continuous(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path, by: str, start: str
) -> None:
    """Consumers live long, one for each partition."""
    source, sink = f"{topic}-in", f"{topic}-out"
    create(admin, source, 1)
    create(admin, sink, 1)
    producer = new_producer(server.bootstrap)
    for number in range(10):
        producer.send(source, b"%d" % number, timestamp_ms=BASE_MS + number)
    producer.close()
    names = {"assign": {source: [0]}, "subscribe": source, "subscribePattern": f"{source}.*"}
    starts: dict[str, tuple[dict[str, object], int]] = {
        "earliest": ({"startingOffsets": "earliest"}, 0),
        "latest": ({"startingOffsets": "latest"}, 10),
        "offsets": ({"startingOffsets": {source: {"0": 4}}}, 4),
        "timestamp": ({"startingTimestamp": BASE_MS + 6}, 6),
        "timestamps": ({"startingOffsetsByTimestamp": {source: {"0": BASE_MS + 7}}}, 7),
    }
    options, first = starts[start]
    query = into(
        server, sink, kafka_stream(spark, server, **{by: names[by]}, **options), tmp_path, **CONTINUOUS
    )
    try:
        wait_until(lambda: (tmp_path / "offsets" / "0").exists(), 60, "the first epoch")
        send(server, source, range(10, 15))
        wait_for(query, server, sink, set(range(first, 15)))
    finally:
        query.stop()
    assert _values(server, sink) == list(range(first, 15))


@pytest.mark.parametrize(
    "trigger",
    [pytest.param(CONTINUOUS, id="continuous"), pytest.param(REAL_TIME, id="real", marks=has_real_time)],
)
def test_a_new_partition(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path, trigger: dict[str, str]
) -> None:
    """Real-time mode finds it when the next batch begins."""
    source, sink = f"{topic}-in", f"{topic}-out"
    create(admin, source, 1)
    create(admin, sink, 1)
    stream = kafka_stream(
        spark, server, subscribe=source, startingOffsets="earliest", kafka_metadata_max_age_ms=200
    )
    query = into(server, sink, stream, tmp_path, **trigger)
    try:
        send(server, source, range(5))
        wait_for(query, server, sink, set(range(5)))
        admin.add_partitions(source, 2)
        wait_until(lambda: len(admin.partitions(source)) == 2, 10, "the new partition")
        send(server, source, range(5, 10), 1)
        wait_for(query, server, sink, set(range(10)))
    finally:
        query.stop()


@has_real_time
def test_real_time(spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path) -> None:
    """Records come through while a batch still runs: from two topics, after an empty batch, and after a
    restart."""
    first, second, sink = (f"{topic}-{name}" for name in ("a", "b", "out"))
    for name in (first, second, sink):
        create(admin, name, 1)
    options = {"startingOffsets": "earliest"}

    def start() -> StreamingQuery:
        streams = (kafka_stream(spark, server, subscribe=name, **options) for name in (first, second))
        return into(server, sink, DataFrame.union(*streams), tmp_path, **REAL_TIME)

    query = start()
    try:
        wait_until(lambda: query.lastProgress is not None, 60, "a batch without records")
        send(server, first, range(20))
        send(server, second, range(20, 40))
        wait_for(query, server, sink, set(range(40)))
    finally:
        query.stop()
    query = start()
    try:
        send(server, second, range(40, 50))
        wait_for(query, server, sink, set(range(50)))
    finally:
        query.stop()
    assert set(_values(server, sink)) == set(range(50))


@has_real_time
@pytest.mark.parametrize("limit", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "minPartitions"])
def test_what_real_time_does_not_know(
    spark: SparkSession, server: Server, admin: Admin, topic: str, tmp_path: Path, limit: str
) -> None:
    create(admin, topic, 1)
    stream = kafka_stream(spark, server, subscribe=topic, **{limit: 4})
    with pytest.raises(Exception, match=f"(?i){limit}"):
        into(server, f"{topic}-out", stream, tmp_path, **REAL_TIME).awaitTermination(60)
