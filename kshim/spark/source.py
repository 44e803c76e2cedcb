"""Read the coordinator's log of kshim, or of any Kafka cluster, through Spark's own Kafka source."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from kshim.spark.cluster import COMMITTED, Position, end_offsets, partition_count, record_times
from kshim.spark.errors import PipelineError
from kshim.spark.values import frame_of

OFFSETS_TOPIC = "__consumer_offsets"
KSHIM_TOPIC = "__kshim_groups"
"""The topic in which a kshim in front of a Kafka cluster keeps its groups."""

# If Spark asks for offsets with an admin client, it leaves internal topics out. The older way, with a
# consumer, does not.
_THROUGH_A_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

END_OFFSETS = {"topic": "string", "partition": "int", "end_offset": "bigint"}
_HEADS = {"topic": "string", "partition": "int", "offset": "bigint", "time_ms": "bigint"}


def find_offsets_log(bootstrap: str) -> str:
    """The topic with the coordinator's log: kshim's topic, if a kshim has been in front of the cluster.

    Raises PipelineError if no server answers at `bootstrap`.
    """
    return KSHIM_TOPIC if partition_count(bootstrap, KSHIM_TOPIC) else OFFSETS_TOPIC


def read_offsets_log(
    spark: SparkSession,
    bootstrap: str,
    *,
    topic: str | None = None,
    stream: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Every record of the coordinator's log, in the columns of Spark's Kafka source, for `decode`.

    topic: `__consumer_offsets`, or `__kshim_groups`; by default the one that `find_offsets_log` finds.
    stream: True for a stream, from the beginning of the log. options: for the source; they override the
    defaults. Commits of aborted transactions are left out. The partitions are assigned, so the query joins no
    group.

    Sets spark.sql.streaming.kafka.useDeprecatedOffsetFetching in the session for good, as Spark reads it only
    when the query runs. Raises PipelineError if no server answers at `bootstrap`, or the topic does not
    exist.
    """
    topic = find_offsets_log(bootstrap) if topic is None else topic
    partitions = partition_count(bootstrap, topic)
    if not partitions:
        raise PipelineError(f"{bootstrap} has no topic {topic}: no group has ever been there")
    return _read(spark, bootstrap, topic, partitions, stream, options or {})


def read_topic(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame | None:
    """Every record of a topic, in the columns of Spark's Kafka source; None if the topic does not exist."""
    partitions = partition_count(bootstrap, topic)
    return _read(spark, bootstrap, topic, partitions, False, {}) if partitions else None


def _read(
    spark: SparkSession, bootstrap: str, topic: str, partitions: int, stream: bool, options: Mapping[str, str]
) -> DataFrame:
    spark.conf.set(_THROUGH_A_CONSUMER, "true")
    settings = {
        "kafka.bootstrap.servers": bootstrap,
        "assign": f'{{"{topic}": {list(range(partitions))}}}',
        "startingOffsets": "earliest",
        "kafka.isolation.level": COMMITTED,
        "kafka.max.poll.records": "10000",
        "failOnDataLoss": "false",  # records that compaction has removed are not lost data
    }
    reader = spark.readStream if stream else spark.read
    log = reader.format("kafka").options(**settings | dict(options)).load()
    if spark.conf.get("spark.master", "").startswith("local"):
        # One task for each of the log's 50 partitions would take longer to set up than to run.
        tasks = min(2 * (os.cpu_count() or 1), int(spark.conf.get("spark.sql.shuffle.partitions", "200")))
        return log.coalesce(tasks)
    return log


def read_end_offsets(
    spark: SparkSession, bootstrap: str, commits: DataFrame, isolation_level: str = "read_uncommitted"
) -> DataFrame:
    """The end offsets of all topics in `commits`: topic, partition, end_offset.

    With read_committed, end_offset is the last stable offset: a consumer with read_committed reads up to it.
    """
    topics = [row.topic for row in commits.select("topic").distinct().toLocalIterator()]
    return frame_of(spark, end_offsets(bootstrap, topics, isolation_level), END_OFFSETS)


def waiting_seconds(bootstrap: str, rows: Sequence[Row]) -> list[float | None]:
    """`lag_seconds` for rows of `group_lag` in the driver: how long the first uncommitted one has waited."""
    behind = [Position(row.topic, row.partition, row.offset) if row.lag else None for row in rows]
    times = record_times(bootstrap, filter(None, behind))
    now_s = time.time()

    def waited(at: Position | None, known: float | None) -> float | None:
        return known if at is None or at not in times else max(now_s - times[at] / 1000, 0.0)

    return [waited(at, row.lag_seconds) for at, row in zip(behind, rows, strict=True)]


def read_head_times(spark: SparkSession, bootstrap: str, lag: DataFrame) -> DataFrame:
    """The timestamp of the first uncommitted record for each row of `group_lag` that has lag.

    Columns: topic, partition, offset, record_time.
    """
    behind = lag.where(fn.col("lag") > 0).select("topic", "partition", "offset").distinct()
    positions = [Position(*row) for row in behind.toLocalIterator()]
    times = record_times(bootstrap, positions)
    rows = [(*position, time_ms) for position, time_ms in times.items()]
    found = frame_of(spark, rows, _HEADS)
    return found.select("topic", "partition", "offset", fn.timestamp_millis("time_ms").alias("record_time"))
