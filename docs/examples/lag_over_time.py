"""Draw the lag of each group of a topic over time, from the coordinator's log and the topic itself.

pip install 'path/to/kshim[spark]' matplotlib
python docs/examples/lag_over_time.py 127.0.0.1:9092 orders lag.png
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from kshim.spark import decode, read_offsets_log
from kshim.testing.spark import spark_session


def produced(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """The end offset of each partition over time: second, partition, end."""
    records = (
        spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    )
    times = records.load().select(second("timestamp"), "partition", (fn.col("offset") + 1).alias("end"))
    return times.groupBy("second", "partition").agg(fn.max("end").alias("end"))


def committed(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """The committed offsets of each group over time: second, group, partition, offset."""
    commits = decode(read_offsets_log(spark, bootstrap)).where(
        (fn.col("topic") == topic) & ~fn.col("tombstone")
    )
    last = fn.max_by("offset", "log_offset").alias("offset")
    return commits.groupBy(second("commit_time"), "group", "partition").agg(last)


def second(column: str) -> fn.Column:
    return fn.date_trunc("second", column).alias("second")


def lag_over_time(ends: DataFrame, offsets: DataFrame) -> DataFrame:
    """The lag of each group in all partitions together: second, group, lag.

    Offsets that are missing for a second are those of the second before.
    """
    seconds = ends.select("second").union(offsets.select("second")).distinct()
    every = seconds.crossJoin(offsets.select("group", "partition").distinct())
    so_far = Window.partitionBy("group", "partition").orderBy("second")
    both = every.join(ends, ["second", "partition"], "left").join(
        offsets, ["second", "group", "partition"], "left"
    )
    known = both.select(
        "second",
        "group",
        fn.coalesce(fn.last("end", ignorenulls=True).over(so_far), fn.lit(0)).alias("end"),
        fn.coalesce(fn.last("offset", ignorenulls=True).over(so_far), fn.lit(0)).alias("offset"),
    )
    return known.groupBy("second", "group").agg(fn.sum(fn.col("end") - fn.col("offset")).alias("lag"))


def draw(lag: DataFrame, topic: str, path: str) -> None:
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    rows = lag.orderBy("second").collect()  # one row for each second and group
    first = rows[0].second
    for group in sorted({row.group for row in rows}):
        of_group = [row for row in rows if row.group == group]
        at = [(row.second - first).total_seconds() for row in of_group]
        axes.step(at, [row.lag for row in of_group], where="post", label=group)
    axes.set(xlabel="seconds", ylabel="records behind", title=f"Groups of {topic}", ylim=(0, None))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main(bootstrap: str, topic: str, path: str) -> None:
    with spark_session("lag over time") as spark:
        lag = lag_over_time(produced(spark, bootstrap, topic), committed(spark, bootstrap, topic))
        draw(lag, topic, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
