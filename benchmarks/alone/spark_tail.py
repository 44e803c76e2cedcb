"""Spark on a broker: a record's latency through a running query, and the speed of bulk reads and writes.

    python -m benchmarks.tail HOST:PORT [PEER_HOST:PORT] [--records 2000000] [--rounds 3] [--tail-records 40]

One Spark in one JVM uses both brokers, in turns. A record's latency is the time from its `send()` to the call
of `foreachBatch` that has it. Needs PySpark, kafka-python, Java and Maven, as `tox -e spark-pyspark40` does.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

from kafka import KafkaProducer
from pyspark.sql import SparkSession

from benchmarks.raw import Connection
from integration.spark.jars import fetch_jars
from integration.support.toolchain import cache_dir
from kshim.testing.spark import settings
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest

VALUE_BYTES = 100
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

    def new_topic(self) -> str:
        name = f"benchmark-{uuid4()}"
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        connection = Connection(self.bootstrap)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
        (made,) = connection.ask(7, request).topics
        assert made.error_code == ErrorCode.NONE, made
        return name

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


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.tail")
    parser.add_argument("bootstrap")
    parser.add_argument("peer", nargs="?")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tail-records", type=int, default=40)
    options = parser.parse_args()
    with spark() as session:
        brokers = [Broker(session, bootstrap) for bootstrap in (options.bootstrap, options.peer) if bootstrap]
        _bulk(brokers, options.records, options.rounds)
        _tail(brokers, options.tail_records, options.rounds)


def _bulk(brokers: list[Broker], records: int, rounds: int) -> None:
    """Both brokers take turns, so that a slow minute hits both."""
    writes: list[list[float]] = [[] for _ in brokers]
    reads: list[list[float]] = [[] for _ in brokers]
    for _ in range(rounds):
        for number, broker in enumerate(brokers):
            topic = broker.new_topic()
            writes[number].append(broker.write(topic, records))
            reads[number].append(broker.read(topic, records))
    for what, rates in (("write", writes), ("read", reads)):
        _tell(f"{what}, {records:,} x {VALUE_BYTES} B, rec/s", [max(each) for each in rates])


def _tail(brokers: list[Broker], count: int, rounds: int) -> None:
    ways: list[list[float]] = [[] for _ in brokers]
    for _ in range(rounds):
        for number, broker in enumerate(brokers):
            ways[number] += broker.tail_ms(broker.new_topic(), max(2, count // rounds))
    _tell("at the tail, p50 ms", [median(each) for each in ways])
    _tell("at the tail, p90 ms", [quantiles(each, n=10)[8] for each in ways])


def _tell(what: str, figures: list[float]) -> None:
    line = f"{what:36} {figures[0]:11,.0f}"
    if len(figures) > 1:
        line += f"   peer {figures[1]:11,.0f}   ratio {figures[0] / figures[1]:.2f}"
    print(line, flush=True)


if __name__ == "__main__":
    main()
