"""Rebalances, one row for each generation of a group: who joined, who left, who leads; and who is to blame.

A group's record is written when a rebalance is complete, so a generation begins where it is first seen. Of a
static member that comes back a record is written too (KIP-345), in the same generation: that is no rebalance.
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kshim.spark.decode import GROUP
from kshim.spark.generations import CLIENT, following


def rebalances(rows: DataFrame, keep_for: timedelta = timedelta(days=7)) -> DataFrame:
    """One row for each generation: group, generation, began, ended (null while it lasts), protocol, leader,
    members (how many), joined, left.

    joined and left: the members that the generation before did not have, and those that only it had. A
    dynamic member that joins anew has a new member id, and is in both.

    On a stream the row of a generation comes twice, at its beginning and at its end, in output mode "update";
    keep_for: how long a group is remembered of which nothing is heard.
    """
    groups = rows.where((fn.col("kind") == GROUP) & fn.col("error").isNull()).select(
        "group",
        "log_partition",
        "log_offset",
        "tombstone",
        "generation",
        fn.coalesce("state_time", "log_time").alias("at"),
        "protocol",
        "leader",
        fn.coalesce(_clients(), fn.array().cast(f"array<{CLIENT}>")).alias("clients"),
    )
    return following(groups, keep_for) if rows.isStreaming else _batch(groups)


def _clients() -> Column:
    return fn.transform(
        "members",
        lambda it: fn.struct(
            it["member_id"].alias("member_id"),
            it["group_instance_id"].alias("group_instance_id"),
            it["client_id"].alias("client_id"),
            it["client_host"].alias("client_host"),
        ),
    )


def _batch(groups: DataFrame) -> DataFrame:
    history = Window.partitionBy("group").orderBy("log_offset")
    before = fn.lag(fn.struct("generation", "clients", "tombstone")).over(history)
    begins = (
        fn.col("before").isNull()
        | fn.col("before.tombstone")
        | (fn.col("before.generation") != fn.col("generation"))
    )
    none = fn.array().cast(f"array<{CLIENT}>")
    were = fn.when(fn.col("before").isNull() | fn.col("before.tombstone"), none).otherwise(
        fn.col("before.clients")
    )
    bounds = (
        groups.withColumn("before", before)
        .where(fn.col("tombstone") | begins)
        .withColumn("ended", fn.lead("at").over(history))
        .withColumn("were", were)
    )
    # Generation 0 is the group before its first rebalance.
    return bounds.where(~fn.col("tombstone") & (fn.col("generation") > 0)).select(
        "group",
        "generation",
        fn.col("at").alias("began"),
        "ended",
        "protocol",
        "leader",
        fn.size("clients").alias("members"),
        _without("clients", "were").alias("joined"),
        _without("were", "clients").alias("left"),
    )


def _without(these: str, those: str) -> Column:
    ids = fn.transform(those, lambda it: it["member_id"])
    return fn.filter(these, lambda it: ~fn.array_contains(ids, it["member_id"]))


def flapping(generations: DataFrame, within: str = "10 minutes", at_least: int = 3) -> DataFrame:
    """The groups that rebalance too often, from the rows of `rebalances`: `at_least` times in a window of
    time.

    group, window, rebalances; and the client that joined or left most often, client_id and client_host. On a
    stream, give the rows a watermark on `began` first.
    """
    clients = fn.concat("joined", "left")
    client = fn.transform(clients, lambda it: fn.to_json(fn.struct(it["client_id"], it["client_host"])))
    changes = generations.withColumn("client", fn.explode_outer(client))
    counted = changes.groupBy("group", fn.window("began", within)).agg(
        fn.size(fn.collect_set("generation")).alias("rebalances"), fn.mode("client").alias("client")
    )
    return counted.where(fn.col("rebalances") >= at_least).select(
        "group",
        "window",
        "rebalances",
        *(fn.get_json_object("client", f"$.{name}").alias(name) for name in ("client_id", "client_host")),
    )
