"""Rebalances: one row for each generation of a group, with the members that joined and left, and the leader.

The coordinator writes a group's record when a rebalance is complete, so a generation begins with its first
record. It writes another record of the same generation when a static member comes back (KIP-345), which is no
rebalance.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kshim.spark.rows import GROUP, sound

CLIENTS = "array<struct<member_id:string,group_instance_id:string,client_id:string,client_host:string>>"
ROW = ("group", "generation", "began", "ended", "protocol", "leader", "members", "joined", "left")
_STATE = ("clients", "log_partition", "log_offset")


def rebalances(rows: DataFrame) -> DataFrame:
    """One row for each generation, from the rows of `decode`.

    Columns: group, generation, began, ended (null while it lasts), protocol, leader, members (their number);
    joined: the members that the previous generation did not have; left: those that only the previous one had.
    A dynamic member that joins anew has a new member id, so it is in both.
    """
    return shown(generations(rows))


def shown(generated: DataFrame) -> DataFrame:
    """The rows of `generations` for users: without generation 0, which is the time before the first
    rebalance.
    """
    return generated.where(fn.col("generation") > 0).select(*ROW)


def generations(rows: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """Like `rebalances`, with the columns needed to continue later: clients, log_partition, log_offset.

    known: this function's result for the part of the log before `rows`. Its ended generations stay unchanged;
    a generation that has not ended may end.
    """
    records = _records(rows)
    if known is None:
        return _generations(records)
    lasting = known.where(fn.col("ended").isNull()).withColumn("at", fn.col("began"))
    going_on = lasting.withColumn("tombstone", fn.lit(False)).drop("began", "ended", "members")
    return _generations(records.unionByName(going_on)).unionByName(known.where(fn.col("ended").isNotNull()))


def _records(rows: DataFrame) -> DataFrame:
    """The records of groups. joined and left are null, as only the rows of `known` have them."""
    unknown = fn.lit(None).cast(CLIENTS)
    return sound(rows, GROUP).select(
        "group",
        "log_partition",
        "log_offset",
        "tombstone",
        "generation",
        fn.coalesce("state_time", "log_time").alias("at"),
        "protocol",
        "leader",
        fn.coalesce(_clients(), fn.array()).cast(CLIENTS).alias("clients"),
        unknown.alias("joined"),
        unknown.alias("left"),
    )


def _clients() -> Column:
    names = ("member_id", "group_instance_id", "client_id", "client_host")
    return fn.transform("members", lambda it: fn.struct(*(it[name].alias(name) for name in names)))


def _generations(records: DataFrame) -> DataFrame:
    history = Window.partitionBy("group").orderBy("log_offset")
    before = fn.lag(fn.struct("generation", "clients", "tombstone")).over(history)
    is_first = fn.col("before").isNull() | fn.col("before.tombstone")
    begins = is_first | (fn.col("before.generation") != fn.col("generation"))
    bound = fn.col("tombstone") | begins
    numbered = records.withColumn("before", before).withColumn(
        "run", fn.sum(fn.when(bound, 1).otherwise(0)).over(history)
    )
    run = Window.partitionBy("group", "run").orderBy("log_offset")
    whole = run.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    latest = {name: fn.last(name).over(whole) for name in _STATE}
    bounds = (
        numbered.withColumn("first", fn.row_number().over(run) == 1)
        .withColumn("were", fn.when(is_first, fn.array().cast(CLIENTS)).otherwise(fn.col("before.clients")))
        .withColumn("began_with", fn.col("clients"))
        .withColumns(latest)
        .where(fn.col("first"))
        .withColumn("ended", fn.lead("at").over(history))
    )
    return bounds.where(~fn.col("tombstone")).select(
        "group",
        "generation",
        fn.col("at").alias("began"),
        "ended",
        "protocol",
        "leader",
        fn.size("clients").alias("members"),
        fn.coalesce("joined", _without("began_with", "were")).alias("joined"),
        fn.coalesce("left", _without("were", "began_with")).alias("left"),
        *_STATE,
    )


def _without(these: str, those: str) -> Column:
    ids = fn.transform(those, lambda it: it["member_id"])
    return fn.filter(these, lambda it: ~fn.array_contains(ids, it["member_id"]))


def flapping(generations: DataFrame, within: str = "10 minutes", at_least: int = 3) -> DataFrame:
    """The groups that rebalance at least `at_least` times in a window of time, from the rows of `rebalances`.

    Columns: group, window, rebalances; client_id, client_host: the client that joined or left most often; and
    cause: the most frequent cause if the rows have causes, from `with_reasons`; else null.
    """
    clients = fn.concat("joined", "left")
    client = fn.transform(clients, lambda it: fn.to_json(fn.struct(it["client_id"], it["client_host"])))
    cause = fn.col("cause") if "cause" in generations.columns else fn.lit(None).cast("string")
    changes = generations.select(
        "group", "generation", "began", cause.alias("cause"), fn.posexplode_outer(client)
    )
    once = fn.when(
        fn.coalesce("pos", fn.lit(0)) == 0, fn.col("cause")
    )  # a generation has a row for each client
    counted = changes.groupBy("group", fn.window("began", within)).agg(
        fn.size(fn.collect_set("generation")).alias("rebalances"),
        fn.mode("col").alias("client"),
        fn.mode(once).alias("cause"),
    )
    return counted.where(fn.col("rebalances") >= at_least).select(
        "group",
        "window",
        "rebalances",
        *(fn.get_json_object("client", f"$.{name}").alias(name) for name in ("client_id", "client_host")),
        "cause",
    )
