"""Members of consumer groups (KIP-848) and the partitions they have; and members that hold a rebalance up.

A member whose partitions are revoked has them until it acknowledges that, and the next owner waits. The
member is removed when its rebalance timeout is over, which is max.poll.interval.ms of its client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kshim.spark.consumer_rows import CURRENT, MEMBER, UNREVOKED
from kshim.spark.rows import sound

_OF = ("group", "member_id")
_WHO = ("group_instance_id", "client_id", "client_host", "rebalance_timeout_ms")
_HELD = "array<struct<topic_id:string,partitions:array<int>>>"


def holding(rows: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """One row for each member that a consumer group has now, from the rows of `decode`.

    Columns: group, member_id, group_instance_id, client_id, client_host, rebalance_timeout_ms; epoch, state,
    assigned and revoking, as in the record; since: when the member came into this state; log_offset.

    known: this function's result for the part of the log before `rows`.
    """
    records = _records(rows)
    if known is not None:
        records = records.unionByName(_again(known))
    history = Window.partitionBy(*_OF, "is_subscription").orderBy("log_offset")
    # Positions do not run on: a record that repeats the state does not count.
    moved = ~fn.col("state").eqNullSafe(fn.lag("state").over(history)) | fn.col("began").isNotNull()
    began = fn.when(moved, fn.coalesce("began", "log_time"))
    marked = records.withColumn("since", fn.last(began, ignorenulls=True).over(history))
    is_it = fn.col("is_subscription")
    who, has = fn.struct("is_there", *_WHO), fn.struct("is_there", *_HAS)
    last = marked.groupBy(*_OF).agg(
        fn.max_by(fn.when(is_it, who), fn.when(is_it, fn.col("log_offset"))).alias("who"),
        fn.max_by(fn.when(~is_it, has), fn.when(~is_it, fn.col("log_offset"))).alias("has"),
        fn.max("log_offset").alias("log_offset"),
    )
    is_member = fn.col("who.is_there") & fn.col("has.is_there")
    return last.where(is_member).select(
        *_OF, *(f"who.{name}" for name in _WHO), *(f"has.{name}" for name in _HAS), "log_offset"
    )


_HAS = ("epoch", "state", "assigned", "revoking", "since")


def _records(rows: DataFrame) -> DataFrame:
    """The records of subscriptions and of partitions, with the columns of both."""
    is_there = (~fn.col("tombstone")).alias("is_there")
    place = "log_offset", "log_time", is_there
    began = fn.lit(None).cast("timestamp").alias("began")
    member, current = fn.col(MEMBER), fn.col(CURRENT)
    subscriptions = sound(rows, MEMBER).select(
        *_OF,
        fn.lit(True).alias("is_subscription"),
        *place,
        began,
        *(member[name].alias(name) for name in _WHO),
    )
    partitions = sound(rows, CURRENT).select(
        *_OF,
        fn.lit(False).alias("is_subscription"),
        *place,
        began,
        *(current[name].alias(name) for name in ("epoch", "state")),
        *(_plain(current[name]).alias(name) for name in ("assigned", "revoking")),
    )
    return subscriptions.unionByName(partitions, allowMissingColumns=True)


def _plain(held: Column) -> Column:
    """Partitions without the epochs in which the member got them."""
    return fn.transform(
        held, lambda it: fn.struct(it["topic_id"].alias("topic_id"), it["partitions"].alias("partitions"))
    ).cast(_HELD)


def _again(known: DataFrame) -> DataFrame:
    """The rows of `known` as two records each, in front of all others."""
    common = known.withColumn("is_there", fn.lit(True)).withColumn("log_time", fn.col("since"))
    subscriptions = common.select(
        *_OF, fn.lit(True).alias("is_subscription"), "log_offset", "log_time", "is_there",
        fn.lit(None).cast("timestamp").alias("began"), *_WHO,
    )  # fmt: skip
    partitions = common.select(
        *_OF, fn.lit(False).alias("is_subscription"), "log_offset", "log_time", "is_there",
        fn.col("since").alias("began"), "epoch", "state", "assigned", "revoking",
    )  # fmt: skip
    return subscriptions.unionByName(partitions, allowMissingColumns=True)


def unrevoked(
    members: DataFrame, for_seconds: float, names: Mapping[str, str] | None = None, now: Column | None = None
) -> DataFrame:
    """The members, from the rows of `holding`, that have not acknowledged a revocation for `for_seconds`.

    A member that has used up half of its rebalance timeout is shown, too: after the whole, it is removed.
    names: the names of topics by their ids. now: by default the time at which the query runs.

    Columns: group, member_id, group_instance_id, client_id, client_host, epoch, rebalance_timeout_ms, since,
    waiting_seconds; and revoking: the partitions, as TOPIC-PARTITION, with the topic's id if its name is
    unknown.
    """
    now = fn.current_timestamp() if now is None else now
    waiting = now.cast("double") - fn.col("since").cast("double")
    least = fn.least(fn.lit(float(for_seconds)), fn.col("rebalance_timeout_ms") / 2000)
    known = fn.from_json(fn.lit(json.dumps(dict(names or {}))), "map<string,string>")

    def partitions(held: Column) -> Column:
        name = fn.coalesce(fn.element_at(known, held["topic_id"]), held["topic_id"])
        return fn.transform(held["partitions"], lambda it: fn.concat(name, fn.lit("-"), it.cast("string")))

    return (
        members.where(fn.col("state") == UNREVOKED)
        .withColumn("waiting_seconds", waiting)
        .where(fn.col("waiting_seconds") >= least)
        .select(
            "group",
            "member_id",
            "group_instance_id",
            "client_id",
            "client_host",
            "epoch",
            "rebalance_timeout_ms",
            "since",
            "waiting_seconds",
            fn.flatten(fn.transform("revoking", partitions)).alias("revoking"),
        )
    )
