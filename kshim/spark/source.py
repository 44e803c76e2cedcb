"""The coordinator's log as Spark's own Kafka source gives it: of kshim, or of any Kafka cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kshim.spark.cluster import COMMITTED, Position, end_offsets, partition_count, record_times

OFFSETS_TOPIC = "__consumer_offsets"

# Where Spark asks an admin client for offsets it leaves internal topics out; the older way, with a consumer,
# does not.
_THROUGH_A_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

END_OFFSETS = "topic string, partition int, end_offset long"


def read_offsets_log(
    spark: SparkSession, bootstrap: str, *, stream: bool = False, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Every record of `__consumer_offsets`, in the columns of Spark's Kafka source; `decode` makes rows of
    them.

    stream: as a stream, from the beginning on. Commits of transactions that were aborted are left out. The
    partitions are assigned, so that no group is joined. options: for the source, they win over ours.

    Sets spark.sql.streaming.kafka.useDeprecatedOffsetFetching in the session, and leaves it so: Spark looks
    at it only when the query runs. Raises PipelineError where nobody answers at `bootstrap`.
    """
    partitions = partition_count(bootstrap, OFFSETS_TOPIC)
    spark.conf.set(_THROUGH_A_CONSUMER, "true")
    settings = {
        "kafka.bootstrap.servers": bootstrap,
        "assign": f'{{"{OFFSETS_TOPIC}": {list(range(partitions))}}}',
        "startingOffsets": "earliest",
        "kafka.isolation.level": COMMITTED,
        "kafka.max.poll.records": "10000",
        "failOnDataLoss": "false",  # compaction takes records away, and that is no loss
    }
    reader = spark.readStream if stream else spark.read
    log = reader.format("kafka").options(**settings | dict(options or {})).load()
    if spark.conf.get("spark.master", "").startswith("local"):
        # A task each for the log's 50 partitions takes longer to set up than to run.
        return log.coalesce(2 * (os.cpu_count() or 1))
    return log


def read_end_offsets(
    spark: SparkSession, bootstrap: str, commits: DataFrame, isolation_level: str = "read_uncommitted"
) -> DataFrame:
    """Where the partitions end of all topics in `commits`: topic, partition, end_offset.

    With read_committed it is the last stable offset, which is as far as such a consumer gets.
    """
    topics = [row.topic for row in commits.select("topic").distinct().toLocalIterator()]
    return spark.createDataFrame(end_offsets(bootstrap, topics, isolation_level), END_OFFSETS)


def read_head_times(spark: SparkSession, bootstrap: str, lag: DataFrame) -> DataFrame:
    """When the first record was written that a group has not got, for each row of `group_lag` that has lag:
    topic, partition, offset, record_time.
    """
    behind = lag.where(fn.col("lag") > 0).select("topic", "partition", "offset").distinct()
    positions = [Position(*row) for row in behind.toLocalIterator()]
    times = record_times(bootstrap, positions)
    rows = [(*position, time_ms) for position, time_ms in times.items()]
    found = spark.createDataFrame(rows, "topic string, partition int, offset long, time_ms long")
    return found.select("topic", "partition", "offset", fn.timestamp_millis("time_ms").alias("record_time"))
