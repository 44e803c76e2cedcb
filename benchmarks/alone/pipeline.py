"""The pipeline over millions of commits: records a second, memory, and whether its answer is right.

Commits so many offsets to each broker, in turns, and asks Spark for each group's latest; the right answer is
known. The brokers do not compact meanwhile. Needs PySpark, kafka-python, Java and Maven, as `tox -e
spark-pyspark40` does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from benchmarks.processor import memory_mib
from benchmarks.raw import Connection
from benchmarks.servers import Settings, Side, all_serving
from integration.spark.jars import fetch_jars
from kshim.cli.pipeline_session import FOR_ONE_MACHINE
from kshim.spark import decode, latest_commits, read_offsets_log
from kshim.spark.connector import default_cache
from kshim.testing.spark import settings
from schemas.api_key import ApiKey
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUPS, PARTITIONS = 200, 50
RECORDS = 5_000_000
VERSION = 8
IN_FLIGHT = 20

Latest = dict[tuple[str, int], int]


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
    topic = connection.new_topic(PARTITIONS)
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
    latest: Any = latest_commits(rows).where(fn.col("topic") == topic)
    found = latest.select("group", "partition", "offset").collect()
    seconds = time.perf_counter() - began
    count = rows.count()
    return count, seconds, {(row.group, row.partition): row.offset for row in found}


def peak_mib() -> float:
    """The peak memory of the JVM, which is driver and executor in one."""
    gateway: Any = SparkContext._gateway
    return memory_mib(gateway.proc.pid, "VmHWM")


def run(sides: Sequence[Side], directory: Path, broker_settings: Settings, _: int) -> None:
    """kshim and the peer, if there is one."""
    builder: Any = SparkSession.builder.master("local[2]").appName("pipeline")
    for name, value in (settings(default_cache(), fetch_jars()) | FOR_ONE_MACHINE).items():
        builder = builder.config(name, value)
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with all_serving(sides, directory, broker_settings) as targets:
        for side, target in targets.items():
            began = time.perf_counter()
            topic, latest = commit(target.bootstrap, RECORDS)
            committing_s = time.perf_counter() - began
            count, seconds, answer = ask(spark, target.bootstrap, topic)
            right = "right" if answer == latest else "WRONG"
            print(
                f"{side.label}: {count:,} commits made in {committing_s:.0f} s; latest of each group: "
                f"{right}, {count / seconds:,.0f} rec/s, JVM at most {peak_mib():,.0f} MiB",
                flush=True,
            )
    spark.stop()
