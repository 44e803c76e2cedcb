"""Epochs of consumer groups (KIP-848): one row for each, with the members that joined and left.

A group's record of an epoch does not name the members. They have records of their own, in front of the epoch
that they set off. So an epoch's members are counted from all that have come and gone before it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kshim.spark.consumer_rows import EPOCH, MEMBER
from kshim.spark.rows import sound

CLIENTS = "array<struct<member_id:string,group_instance_id:string,client_id:string,client_host:string>>"

_PLACE = ("log_offset", "turn")


def epochs(rows: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """One row for each epoch, and one for the deletion of a group, from the rows of `decode`.

    Columns: group, type (null for epochs that are not from `known`), log_partition, log_offset, tombstone,
    generation, at, protocol, leader, members, joined, left. Of the last epoch of each group also clients: all
    members; and newcomers: the ids of those that came after it. A static member that comes back under another
    id has neither joined nor left.

    known: the present epochs, as rows with these columns, in front of `rows`.
    """
    changes, found = _members(rows), _epochs(rows)
    if known is not None:
        changes = changes.unionByName(_known_members(known))
        found = found.unionByName(_known_epochs(known))
    by_run = _in_runs(_turns(changes), found)
    return _flat(by_run)


# ---- the log as changes


def _members(rows: DataFrame) -> DataFrame:
    """The records of members. client is null if the member is deleted."""
    value = fn.col(MEMBER)
    client = fn.struct(
        "member_id",
        value["group_instance_id"].alias("group_instance_id"),
        value["client_id"].alias("client_id"),
        value["client_host"].alias("client_host"),
    )
    return sound(rows, MEMBER).select(
        "group",
        "log_partition",
        "log_offset",
        fn.lit(1).alias("turn"),
        "member_id",
        fn.when(~fn.col("tombstone"), client).alias("client"),
    )


def _known_members(known: DataFrame) -> DataFrame:
    """The members of the present epochs: in front of the epoch, and newcomers behind it."""
    each = known.select(
        "group", "log_partition", "log_offset", "newcomers", fn.explode("clients").alias("client")
    )
    is_new = fn.array_contains("newcomers", fn.col("client.member_id"))
    return each.select(
        "group",
        "log_partition",
        "log_offset",
        fn.when(is_new, 3).otherwise(1).alias("turn"),
        fn.col("client.member_id").alias("member_id"),
        "client",
    )


def _epochs(rows: DataFrame) -> DataFrame:
    unknown = fn.lit(None).cast(CLIENTS)
    return sound(rows, EPOCH).select(
        "group",
        "log_partition",
        "log_offset",
        fn.lit(2).alias("turn"),
        "tombstone",
        fn.col(f"{EPOCH}.epoch").alias("generation"),
        fn.col("log_time").alias("at"),
        fn.lit(None).cast("string").alias("type"),
        unknown.alias("joined"),
        unknown.alias("left"),
    )


def _known_epochs(known: DataFrame) -> DataFrame:
    return known.select(
        "group", "log_partition", "log_offset", fn.lit(2).alias("turn"), "tombstone", "generation", "at",
        "type", "joined", "left",
    )  # fmt: skip


def _turns(changes: DataFrame) -> DataFrame:
    """The records with which a member comes (change is 1) or goes (-1).

    client and identity are from the record with which it came. A record that repeats or changes the
    subscription of a member is left out.
    """
    history = Window.partitionBy("group", "member_id").orderBy(*_PLACE)
    is_there = fn.col("client").isNotNull()
    was_there = fn.coalesce(fn.lag(is_there).over(history), fn.lit(False))
    change = fn.when(is_there & ~was_there, 1).when(~is_there & was_there, -1)
    turned = changes.withColumn("change", change).where(fn.col("change").isNotNull())
    came = fn.last("client", ignorenulls=True).over(history)
    return turned.withColumn("client", came).withColumn(
        "identity", fn.coalesce("client.group_instance_id", "member_id")
    )


# ---- the changes, in runs that end with an epoch


def _in_runs(turns: DataFrame, found: DataFrame) -> DataFrame:
    """One row for each run: epoch, joined, left, net, standing.

    epoch: a struct; null in the run behind the last epoch. net: how many more members there are. standing:
    the members that came in this run and have stayed to the end.
    """
    epoch = fn.struct(
        "log_partition", "log_offset", "tombstone", "generation", "at", "type", "joined", "left"
    )
    begun = found.select("group", *_PLACE, epoch.alias("epoch"))
    turned = turns.select("group", *_PLACE, "change", "client", "identity")
    both = turned.unionByName(begun, allowMissingColumns=True)
    history = Window.partitionBy("group").orderBy(*_PLACE)
    before = history.rowsBetween(Window.unboundedPreceding, -1)
    ends = fn.when(fn.col("epoch").isNotNull(), 1).otherwise(0)
    numbered = both.withColumn("run", fn.coalesce(fn.sum(ends).over(before), fn.lit(0)))
    last = fn.struct(*_PLACE)
    netted = numbered.groupBy("group", "run", "identity").agg(
        fn.coalesce(fn.sum("change"), fn.lit(0)).alias("net"),
        fn.max_by("client", last).alias("client"),
        fn.first("epoch", ignorenulls=True).alias("epoch"),
    )
    life = Window.partitionBy("group", "identity")
    later = life.orderBy(fn.desc("run")).rowsBetween(Window.unboundedPreceding, -1)
    # A static member that came back has a later client, and still the run in which it came first.
    stays = fn.sum("net").over(life) > 0
    came_last = (fn.col("net") > 0) & (fn.coalesce(fn.max("net").over(later), fn.lit(0)) <= 0)
    newest = fn.first("client", ignorenulls=True).over(life.orderBy(fn.desc("run")))
    standing = fn.when(fn.col("identity").isNotNull() & stays & came_last, newest)
    return (
        netted.withColumn("standing", standing)
        .groupBy("group", "run")
        .agg(
            fn.first("epoch", ignorenulls=True).alias("epoch"),
            fn.sum("net").alias("net"),
            _those(fn.col("net") > 0).alias("joined"),
            _those(fn.col("net") < 0).alias("left"),
            fn.sort_array(fn.collect_list("standing")).alias("standing"),
        )
    )


def _those(condition: Column) -> Column:
    return fn.sort_array(fn.collect_list(fn.when(condition, fn.col("client"))))


def _flat(by_run: DataFrame) -> DataFrame:
    """One row for each epoch; the last of a group has the state with which to continue."""
    history = Window.partitionBy("group").orderBy("run")
    counted = by_run.withColumn("members", fn.sum("net").over(history).cast("int"))
    together = counted.groupBy("group").agg(
        fn.sort_array(fn.collect_list(fn.struct("run", "epoch", "members", "joined", "left"))).alias("runs"),
        fn.sort_array(fn.collect_list(fn.struct("run", "standing"))).alias("standing"),
    )
    runs = fn.filter("runs", lambda it: it["epoch"].isNotNull())
    last_run = fn.element_at("runs", -1)["run"]
    new = fn.filter("standing", lambda it: it["run"] > fn.col("last_run"))
    ids = fn.flatten(fn.transform(new, lambda it: fn.transform(it["standing"], lambda one: one["member_id"])))
    each = (
        together.withColumn("runs", runs)
        .where(fn.size("runs") > 0)
        .withColumn("last_run", last_run)
        .withColumn("newcomers", ids)
        .withColumn("clients", fn.flatten(fn.transform("standing", lambda it: it["standing"])))
        .withColumn("it", fn.explode("runs"))
    )
    is_last = fn.col("it.run") == fn.col("last_run")
    none = fn.lit(None)
    return each.select(
        "group",
        "it.epoch.type",
        "it.epoch.log_partition",
        "it.epoch.log_offset",
        "it.epoch.tombstone",
        "it.epoch.generation",
        "it.epoch.at",
        none.cast("string").alias("protocol"),
        none.cast("string").alias("leader"),
        "it.members",
        fn.coalesce("it.epoch.joined", "it.joined").cast(CLIENTS).alias("joined"),
        fn.coalesce("it.epoch.left", "it.left").cast(CLIENTS).alias("left"),
        fn.when(is_last, fn.col("clients")).otherwise(fn.array()).cast(CLIENTS).alias("clients"),
        fn.when(is_last, fn.col("newcomers")).otherwise(fn.array()).cast("array<string>").alias("newcomers"),
    )
