"""Lag, commits and rebalances of groups over time, in a fixed number of steps.

The log is read and sorted once, by `commits_by_step`; everything else comes from that small table. All tables
grow with the number of groups, partitions and steps, not with the number of commits.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from kshim.spark.cluster import ends_at
from kshim.spark.commits import COMMIT, OF, POSITION, moving_commits
from kshim.spark.report.values import Steps
from kshim.spark.values import frame_of


def step_of(steps: Steps, time: Column) -> Column:
    """The step of a time; the first or the last step if the time is before or after all steps."""
    index = fn.floor((fn.unix_millis(time) - steps.began_ms) / steps.width_ms)
    return fn.least(fn.greatest(index, fn.lit(0)), fn.lit(steps.number - 1)).cast("int")


def commits_by_step(rows: DataFrame, steps: Steps) -> DataFrame:
    """One row for each group, partition and step with commits.

    Columns: group, topic, partition, step; commits: their number; last: the last one, as a struct of COMMIT,
    POSITION and `tombstone`; moved_at and since: the position and time of the last change of the offset, if
    it changed in this step.

    rows: from `decode`.
    """
    place = fn.struct(*POSITION)
    at = fn.coalesce("commit_time", "log_time")
    is_in = fn.unix_millis("at") >= steps.began_ms  # older commits only give the offsets at the beginning
    return (
        moving_commits(rows, "log_time")
        .withColumn("at", at)
        .withColumn("step", step_of(steps, fn.col("at")))
        .groupBy(*OF, "step")
        .agg(
            fn.count_if(is_in & ~fn.col("tombstone")).alias("commits"),
            fn.max_by(fn.struct("tombstone", *COMMIT, *POSITION), place).alias("last"),
            fn.max("moved_at").alias("moved_at"),
            fn.max_by("since", "moved_at").alias("since"),
        )
    )


def latest_of(by_step: DataFrame) -> DataFrame:
    """The result of `latest_commits` for the same log."""
    place = fn.struct(*(f"last.{name}" for name in POSITION))
    last = by_step.groupBy(*OF).agg(
        fn.max_by("last", place).alias("last"), fn.max_by("since", "moved_at").alias("since")
    )
    return last.where(~fn.col("last.tombstone")).select(
        *OF, *(f"last.{name}" for name in (*COMMIT, *POSITION)), "since"
    )


def read_ends_by_step(spark: SparkSession, bootstrap: str, topics: list[str], steps: Steps) -> DataFrame:
    """The end offset of each partition at the end of each step: topic, partition, ends (array).

    It depends on the records' timestamps, as the cluster is asked for the first record after a step's end.
    """
    ends = ends_at(bootstrap, topics, steps.ends_ms())
    rows = [(*at, offsets) for at, offsets in ends.items()]
    return frame_of(spark, rows, {"topic": "string", "partition": "int", "ends": "array<bigint>"})


def lag_by_step(by_step: DataFrame, ends: DataFrame, steps: Steps) -> DataFrame:
    """How many records each group was behind at the end of each step: group, step, lag.

    A committed offset counts until the next commit of the same group and partition, or until it is deleted.
    ends: from `read_ends_by_step`. Partitions of deleted topics have no lag.
    """
    history = Window.partitionBy(*OF).orderBy("step")
    until = fn.coalesce(fn.lead("step").over(history) - 1, fn.lit(steps.number - 1))
    held = by_step.withColumn("until", until).where(~fn.col("last.tombstone"))
    each = held.join(ends, ["topic", "partition"]).select(
        "group",
        "ends",
        fn.col("last.offset").alias("offset"),
        fn.explode(fn.sequence("step", "until")).alias("step"),
    )
    behind = fn.element_at("ends", fn.col("step") + 1) - fn.col("offset")
    return each.groupBy("group", "step").agg(fn.sum(fn.greatest(behind, fn.lit(0))).alias("lag"))


def commit_counts(by_step: DataFrame) -> DataFrame:
    """How often each group committed in each step: group, step, commits."""
    return by_step.groupBy("group", "step").agg(fn.sum("commits").alias("commits"))


def rebalances_by_step(rebalances: DataFrame, steps: Steps) -> DataFrame:
    """How often each group rebalanced in each step, and why: group, step, kind (one of KINDS), rebalances.

    rebalances: from `with_reasons`.
    """
    begun = rebalances.where(fn.unix_millis("began") >= steps.began_ms)
    kinds = begun.select("group", step_of(steps, fn.col("began")).alias("step"), kind().alias("kind"))
    return kinds.groupBy("group", "step", "kind").agg(fn.count("*").alias("rebalances"))


def kind() -> Column:
    """A rebalance's kind, one of KINDS: from the cause if it is known, else from the members that came and
    went.
    """
    cause = fn.lower("cause")
    by_cause = (
        fn.when(cause.rlike("coordinator"), "other")
        .when(cause.rlike("topic"), "topic")
        .when(cause.rlike("expired|in time|evicted"), "lost")
        .when(cause.rlike("left|removed"), "left")
        .when(cause.rlike("joined|came back"), "joined")
        .otherwise("other")
    )
    by_members = fn.when(fn.size("joined") > 0, "joined").when(fn.size("left") > 0, "left").otherwise("other")
    return fn.when(cause.isNotNull(), by_cause).otherwise(by_members)
