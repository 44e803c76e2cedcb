"""The groups' latest commits, their lag, and the groups that are stuck."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kshim.spark.rows import OFFSET, sound

OF = ("group", "topic", "partition")
POSITION = ("log_partition", "log_offset")
COMMIT = ("offset", "leader_epoch", "metadata", "commit_time")


def latest_commits(rows: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """The last commit of each group for each partition; deleted offsets are left out.

    Columns: group, topic, partition, offset, leader_epoch, metadata, commit_time, log_partition, log_offset;
    and since: when the group changed to this offset; later commits of the same offset do not count.

    rows: from `decode`. known: this function's result for the part of the log before `rows`.
    """
    last = (
        moving_commits(rows, known=known)
        .groupBy(*OF)
        .agg(
            fn.max_by(fn.struct("tombstone", *COMMIT, *POSITION), fn.struct(*POSITION)).alias("last"),
            fn.max_by("since", "moved_at").alias("since"),
        )
    )
    return last.where(~fn.col("last.tombstone")).select(
        *OF, *(f"last.{name}" for name in (*COMMIT, *POSITION)), "since"
    )


def moving_commits(rows: DataFrame, *more: str, known: DataFrame | None = None) -> DataFrame:
    """All commits, with a column moved_at: the commit's position if it changed the group's offset, else null.

    rows: from `decode`; `more` of its columns are kept. known: as for `latest_commits`.
    """
    columns = *OF, *POSITION, "tombstone", *COMMIT, *more
    commits = sound(rows, OFFSET).select(*columns, fn.col("commit_time").alias("since"))
    if known is not None:
        commits = commits.unionByName(known.withColumn("tombstone", fn.lit(False)))
    history = Window.partitionBy(*OF).orderBy(*POSITION)
    # The last record that changed the offset: since then the group has been at its present offset.
    moved = ~fn.col("offset").eqNullSafe(fn.lag("offset").over(history))
    moved_at = fn.when(fn.col("moved"), fn.struct(*POSITION))
    return commits.withColumn("moved", moved).withColumn("moved_at", moved_at)


def group_lag(
    commits: DataFrame, ends: DataFrame, heads: DataFrame | None = None, now: Column | None = None
) -> DataFrame:
    """How far each group is behind, in records and in seconds.

    commits: from `latest_commits`. ends: topic, partition, end_offset. heads: topic, partition, offset, and
    record_time, the timestamp of the first record that the group has not committed; without heads,
    lag_seconds is null. now: by default the time at which the query runs.

    Adds end_offset, lag (0 if the commit is beyond the end), lag_seconds (0 without lag), and beyond_end:
    true if the commit is beyond the end, which happens when a topic is created anew. For a deleted topic,
    end_offset and lag are null.
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
    """The rows of `group_lag` with lag and an offset that has not changed for `for_seconds` or longer.

    Adds stuck_seconds.
    """
    return lag.withColumn("stuck_seconds", stuck_seconds(now)).where(
        (fn.col("lag") > 0) & (fn.col("stuck_seconds") >= for_seconds)
    )


def stuck_seconds(now: Column | None = None) -> Column:
    """How long the offset of a row of `group_lag` has not changed, in seconds."""
    return _now(now) - _seconds(fn.col("since"))


def _now(now: Column | None) -> Column:
    return _seconds(fn.current_timestamp() if now is None else now)


def _seconds(time: Column) -> Column:
    return time.cast("double")
