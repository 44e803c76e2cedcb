"""What groups have committed, how far that is behind, and who does not move."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kshim.spark.rows import OFFSET, sound

OF = ("group", "topic", "partition")
_POSITION = ("log_partition", "log_offset")
_COMMIT = ("offset", "leader_epoch", "metadata", "commit_time")


def latest_commits(rows: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """The last commit of each group for each partition, from decoded rows; what was deleted is left out.

    group, topic, partition, offset, leader_epoch, metadata, commit_time, log_partition, log_offset; and
    since: when the group first committed this offset, after its last commit of another one. known: what this
    function said of the part of the log before `rows`.
    """
    columns = *OF, *_POSITION, "tombstone", *_COMMIT
    commits = sound(rows, OFFSET).select(*columns, fn.col("commit_time").alias("since"))
    if known is not None:
        commits = commits.unionByName(known.withColumn("tombstone", fn.lit(False)))
    history = Window.partitionBy(*OF).orderBy(*_POSITION)
    # The last record at which the offset changed: the group has been where it is now since then.
    moved = ~fn.col("offset").eqNullSafe(fn.lag("offset").over(history))
    moved_at = fn.when(fn.col("moved"), fn.struct(*_POSITION))
    last = (
        commits.withColumn("moved", moved)
        .groupBy(*OF)
        .agg(
            fn.max_by(fn.struct("tombstone", *_COMMIT, *_POSITION), fn.struct(*_POSITION)).alias("last"),
            fn.max_by("since", moved_at).alias("since"),
        )
    )
    return last.where(~fn.col("last.tombstone")).select(
        *OF, *(f"last.{name}" for name in (*_COMMIT, *_POSITION)), "since"
    )


def group_lag(
    commits: DataFrame, ends: DataFrame, heads: DataFrame | None = None, now: Column | None = None
) -> DataFrame:
    """How far each group is behind, in records and in seconds.

    commits: of `latest_commits`. ends: topic, partition, end_offset. heads: topic, partition, offset,
    record_time: when the first record that a group has not got was written; without it lag_seconds is null.
    now: else the time at which the query runs.

    Adds end_offset, lag (0 where the commit is beyond the end), lag_seconds (0 without lag), and beyond_end:
    the commit is beyond the end, as happens where a topic was made anew. A topic that is gone has no end and
    no lag.
    """
    joined = commits.join(ends, ["topic", "partition"], "left")
    behind = fn.col("end_offset") - fn.col("offset")
    lag = fn.when(behind >= 0, behind).when(behind < 0, 0)
    seconds = fn.lit(None).cast("double")
    if heads is not None:
        joined = joined.join(heads, ["topic", "partition", "offset"], "left")
        seconds = fn.greatest(_now(now) - _seconds(fn.col("record_time")), fn.lit(0.0))
    return joined.withColumn("lag", lag).select(
        *OF,
        "offset",
        "end_offset",
        "lag",
        fn.when(fn.col("lag") == 0, fn.lit(0.0)).otherwise(seconds).alias("lag_seconds"),
        (fn.col("offset") > fn.col("end_offset")).alias("beyond_end"),
        "commit_time",
        "since",
    )


def stuck(lag: DataFrame, for_seconds: float, now: Column | None = None) -> DataFrame:
    """The rows of `group_lag` of groups that do not move: there is lag, and for `for_seconds` or longer they
    have committed the same offset, or nothing. Adds stuck_seconds.
    """
    seconds = _now(now) - _seconds(fn.col("since"))
    return lag.withColumn("stuck_seconds", seconds).where(
        (fn.col("lag") > 0) & (fn.col("stuck_seconds") >= for_seconds)
    )


def _now(now: Column | None) -> Column:
    return _seconds(fn.current_timestamp() if now is None else now)


def _seconds(time: Column) -> Column:
    return time.cast("double")
