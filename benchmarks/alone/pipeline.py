"""The pipeline over millions of commits: records a second, memory, and whether its answer is right.

    python -m benchmarks.pipeline HOST:PORT [PEER_HOST:PORT] [--records 5000000]

Commits so many offsets to each broker, in turns, and asks Spark for each group's latest; the right answer is
known. Start the brokers so that they do not compact meanwhile: kshim with
`--set log.cleaner.min.cleanable.ratio=1`, Apache Kafka with `--set log.cleaner.enable=false`. Needs PySpark,
kafka-python, Java and Maven, as `tox -e spark-pyspark40` does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from benchmarks.raw import Connection
from integration.spark.jars import fetch_jars
from kshim.cli.pipeline_questions import FOR_ONE_MACHINE
from kshim.spark import decode, latest_commits, read_offsets_log
from kshim.spark.connector import default_cache
from kshim.testing.spark import settings
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUPS, PARTITIONS = 200, 50
VERSION = 8
IN_FLIGHT = 20

Latest = dict[tuple[str, int], int]


def new_topic(connection: Connection) -> str:
    name = f"benchmark-{uuid4()}"
    topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
    (made,) = connection.ask(7, request).topics
    assert made.error_code == ErrorCode.NONE, made
    return name


def requests(topic: str, records: int) -> Iterator[OffsetCommitRequest]:
    """The groups commit in turn, each for all partitions."""
    for number in range(records // PARTITIONS):
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=number * 10 + index)
            for index in range(PARTITIONS)
        )
        yield OffsetCommitRequest(
            group_id=f"{topic}-{number % GROUPS}",
            generation_id_or_member_epoch=-1,
            topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
        )


def commit(bootstrap: str, records: int) -> tuple[str, Latest]:
    """Returns the topic, and what each group has committed last."""
    connection = Connection(bootstrap)
    topic = new_topic(connection)
    for number in range(GROUPS):
        connection.find_coordinator(f"{topic}-{number}")
    latest: Latest = {}
    waiting = 0
    for request in requests(topic, records):
        connection.request(VERSION, request)
        waiting += 1
        while waiting >= IN_FLIGHT:
            connection.response(VERSION, ApiKey.OFFSET_COMMIT)
            waiting -= 1
        for partition in request.topics[0].partitions:
            latest[request.group_id, partition.partition_index] = partition.committed_offset
    for _ in range(waiting):
        connection.response(VERSION, ApiKey.OFFSET_COMMIT)
    return topic, latest


def ask(spark: SparkSession, bootstrap: str, topic: str) -> tuple[int, float, Latest]:
    """Returns how many records were read, in how many seconds, and the answer."""
    began = time.perf_counter()
    rows = decode(read_offsets_log(spark, bootstrap))
    latest = latest_commits(rows).where(fn.col("topic") == topic)
    found = latest.select("group", "partition", "offset").collect()
    seconds = time.perf_counter() - began
    count = rows.count()
    return count, seconds, {(row.group, row.partition): row.offset for row in found}


def peak_mib() -> float:
    """The peak memory of the JVM, which is driver and executor in one."""
    status = Path(f"/proc/{SparkContext._gateway.proc.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.pipeline")
    parser.add_argument("bootstrap")
    parser.add_argument("peer", nargs="?")
    parser.add_argument("--records", type=int, default=5_000_000)
    options = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").appName("pipeline")
    for name, value in (settings(default_cache(), fetch_jars()) | FOR_ONE_MACHINE).items():
        builder = builder.config(name, value)
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for bootstrap in filter(None, (options.bootstrap, options.peer)):
        began = time.perf_counter()
        topic, latest = commit(bootstrap, options.records)
        committing_s = time.perf_counter() - began
        count, seconds, answer = ask(spark, bootstrap, topic)
        right = "right" if answer == latest else "WRONG"
        print(
            f"{bootstrap}: {count:,} commits made in {committing_s:.0f} s; latest of each group: {right}, "
            f"{count / seconds:,.0f} rec/s, JVM at most {peak_mib():,.0f} MiB",
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()
