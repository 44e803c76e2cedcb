"""Spark on a broker: a record's latency through a running query, and the speed of bulk reads and writes.

One Spark in one JVM uses all brokers, in turns. A record's latency is the time from its `send()` to the call
of `foreachBatch` that has it. Needs PySpark, kafka-python, Java and Maven, as `tox -e spark-pyspark40` does.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from statistics import median, quantiles
from typing import Any

from kafka import KafkaProducer
from pyspark.sql import SparkSession

from benchmarks.raw import Connection
from benchmarks.servers import Settings, Side, all_serving
from integration.spark.jars import fetch_jars
from integration.support.toolchain import cache_dir
from kshim.testing.spark import settings

RECORDS, VALUE_BYTES = 2_000_000, 100
TAIL_RECORDS = 40
WARM_UPS = 8
BATCH_TIMEOUT_S = 60


@contextlib.contextmanager
def spark() -> Iterator[SparkSession]:
    builder: Any = SparkSession.builder.master("local[2]").appName("tail")
    for name, value in settings(cache_dir(), fetch_jars()).items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@dataclass(frozen=True)
class Broker:
    spark: SparkSession
    bootstrap: str
    name: str

    def new_topic(self) -> str:
        return Connection(self.bootstrap).new_topic(1)

    def source(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}

    def write(self, topic: str, records: int) -> float:
        """Records per second of a batch write."""
        value = f"lpad(cast(id as string), {VALUE_BYTES}, 'x') as value"
        frame = self.spark.range(0, records, 1, 1).selectExpr(value)
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
        began = time.perf_counter()
        writer.option("topic", topic).save()
        return records / (time.perf_counter() - began)

    def read(self, topic: str, records: int) -> float:
        """Records per second of a batch read that looks at every value."""
        frame = self.spark.read.format("kafka").options(**self.source(topic)).load()
        began = time.perf_counter()
        (row,) = frame.selectExpr("sum(length(value)) as bytes").collect()
        assert row.bytes == records * VALUE_BYTES, row
        return records / (time.perf_counter() - began)

    def tail_ms(self, topic: str, count: int) -> list[float]:
        """The latencies of `count` records through a query; each is sent soon after the last has arrived."""
        arrived: SimpleQueue[float] = SimpleQueue()

        def on_batch(frame: Any, _: int) -> None:
            for _row in frame.select("value").collect():
                arrived.put(time.perf_counter())

        stream = self.spark.readStream.format("kafka").options(**self.source(topic)).load()
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, acks="all")
        with tempfile.TemporaryDirectory() as directory:
            query = stream.writeStream.foreachBatch(on_batch)
            running = query.option("checkpointLocation", str(Path(directory) / "checkpoint")).start()
            try:
                ways = [self._way_ms(producer, topic, arrived) for _ in range(WARM_UPS + count)]
            finally:
                running.stop()
                producer.close()
        return ways[WARM_UPS:]

    def _way_ms(self, producer: Any, topic: str, arrived: SimpleQueue[float]) -> float:
        time.sleep(random.uniform(0.05, 0.3))
        sent = time.perf_counter()
        producer.send(topic, b"x" * VALUE_BYTES)
        return (arrived.get(timeout=BATCH_TIMEOUT_S) - sent) * 1000


def run(sides: Sequence[Side], directory: Path, settings: Settings, rounds: int) -> None:
    """kshim and the peer, if there is one."""
    with all_serving(sides, directory, settings) as targets, spark() as session:
        brokers = [Broker(session, target.bootstrap, side.label) for side, target in targets.items()]
        _bulk(brokers, rounds)
        _tail(brokers, rounds)


def _bulk(brokers: Sequence[Broker], rounds: int) -> None:
    """The brokers take turns, so that a slow minute hits all."""
    writes: dict[Broker, list[float]] = {broker: [] for broker in brokers}
    reads: dict[Broker, list[float]] = {broker: [] for broker in brokers}
    for _ in range(rounds):
        for broker in brokers:
            topic = broker.new_topic()
            writes[broker].append(broker.write(topic, RECORDS))
            reads[broker].append(broker.read(topic, RECORDS))
    for what, rates in (("write", writes), ("read", reads)):
        _tell(f"{what}, {RECORDS:,} x {VALUE_BYTES} B, rec/s", {it.name: max(rates[it]) for it in brokers})


def _tail(brokers: Sequence[Broker], rounds: int) -> None:
    ways: dict[Broker, list[float]] = {broker: [] for broker in brokers}
    for _ in range(rounds):
        for broker in brokers:
            ways[broker] += broker.tail_ms(broker.new_topic(), max(2, TAIL_RECORDS // rounds))
    _tell("at the tail, p50 ms", {it.name: median(ways[it]) for it in brokers})
    _tell("at the tail, p90 ms", {it.name: quantiles(ways[it], n=10)[8] for it in brokers})


def _tell(what: str, figures: Mapping[str, float]) -> None:
    shown = "   ".join(f"{name} {figure:11,.0f}" for name, figure in figures.items())
    ours, *theirs = figures.values()
    ratio = f"   ratio {ours / theirs[-1]:.2f}" if theirs else ""
    print(f"{what:36} {shown}{ratio}", flush=True)
