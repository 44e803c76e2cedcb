"""Rebalances: one row for each generation of a group, with the members that joined and left, and the leader.

A generation of a consumer group is its group epoch. The coordinator writes a classic group's record when a
rebalance is complete, so a generation begins with its first record. It writes another record of the same
generation when a static member comes back (KIP-345), which is no rebalance. Nor is it a rebalance when a
group is converted to the other protocol: its first record there repeats the number.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kshim.spark.epochs import CLIENTS, epochs
from kshim.spark.rows import GROUP, sound

CLASSIC, CONSUMER = "classic", "consumer"
ROW = ("group", "type", "generation", "began", "ended", "protocol", "leader", "members", "joined", "left")
_STATE = ("clients", "newcomers", "now", "log_partition", "log_offset")


def rebalances(rows: DataFrame) -> DataFrame:
    """One row for each generation, from the rows of `decode`.

    Columns: group, type ("classic" or "consumer"), generation (of consumer groups: the group epoch), began,
    ended (null while it lasts), protocol, leader (both null for consumer groups), members (their number);
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
    """Like `rebalances`, with the columns needed to continue later: clients, newcomers, now (the group's type
    at the end), log_partition, log_offset.

    known: this function's result for the part of the log before `rows`. Its ended generations stay unchanged;
    a generation that has not ended may end.
    """
    if known is None:
        return _joined_up(_classic(_records(rows)), epochs(rows))
    lasting = known.where(fn.col("ended").isNull()).withColumn("at", fn.col("began"))
    going_on = lasting.withColumn("tombstone", fn.lit(False)).drop("began", "ended")
    records = going_on.where(fn.col("now") == CLASSIC).drop("members", "newcomers", "now")
    of_consumers = epochs(rows, going_on.where(fn.col("now") == CONSUMER))
    merged = _joined_up(_classic(_records(rows).unionByName(records)), of_consumers)
    return merged.unionByName(known.where(fn.col("ended").isNotNull()))


def _records(rows: DataFrame) -> DataFrame:
    """The records of classic groups. type, joined and left are null: only the rows of `known` have them."""
    unknown = fn.lit(None).cast(CLIENTS)
    return sound(rows, GROUP).select(
        "group",
        fn.lit(None).cast("string").alias("type"),
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


def _classic(records: DataFrame) -> DataFrame:
    """One row for each generation of classic groups, and one for the deletion of a group.

    The columns are those of `epochs`; clients are the generation's last ones. first_offset: the offset of its
    first record.
    """
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
    latest = {name: fn.last(name).over(whole) for name in ("clients", "log_partition", "log_offset")}
    return (
        numbered.withColumn("first", fn.row_number().over(run) == 1)
        .withColumn("were", fn.when(is_first, fn.array().cast(CLIENTS)).otherwise(fn.col("before.clients")))
        .withColumn("began_with", fn.col("clients"))
        .withColumn("first_offset", fn.col("log_offset"))
        .withColumns(latest)
        .where(fn.col("first"))
        .select(
            "group",
            "type",
            "log_partition",
            "log_offset",
            "tombstone",
            "generation",
            "at",
            "protocol",
            "leader",
            fn.size("clients").alias("members"),
            fn.coalesce("joined", _without("began_with", "were")).alias("joined"),
            fn.coalesce("left", _without("were", "began_with")).alias("left"),
            "clients",
            fn.array().cast("array<string>").alias("newcomers"),
            "first_offset",
        )
    )


def _joined_up(classic: DataFrame, of_consumers: DataFrame) -> DataFrame:
    """Both kinds of generations as one history, without the records that only convert a group."""
    both = classic.withColumn("now", fn.lit(CLASSIC)).unionByName(
        of_consumers.withColumn("first_offset", fn.col("log_offset")).withColumn("now", fn.lit(CONSUMER))
    )
    history = Window.partitionBy("group").orderBy("first_offset")
    state = fn.struct("now", "tombstone", "generation", "members", "left")
    seen = both.withColumn("before", fn.lag(state).over(history)).withColumn(
        "earlier", fn.lag(state, 2).over(history)
    )
    converts = fn.coalesce(
        ~fn.col("tombstone")
        & fn.col("before.tombstone")
        & (fn.col("before.now") != fn.col("now"))
        & (fn.col("earlier.now") != fn.col("now"))
        & (fn.col("earlier.generation") == fn.col("generation"))
        & (fn.col("earlier.members") > 0),
        fn.lit(False),
    )
    marked = seen.withColumn("converts", converts)
    is_given_up = fn.col("tombstone") & fn.coalesce(fn.lead("converts").over(history), fn.lit(False))
    # Members that are not in a converted group have left, in the view of the generation that follows.
    lost = fn.when(fn.col("converts") & (fn.col("now") == CLASSIC), _without("before.left", "clients"))
    kept = marked.withColumn("lost", lost).withColumn("given_up", is_given_up).where(~fn.col("given_up"))
    parted = fn.lag("lost").over(history)
    run = Window.partitionBy("group", "run").orderBy("first_offset")
    whole = run.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    latest = {name: fn.last(name).over(whole) for name in (*_STATE, "members", "protocol", "leader")}
    return (
        kept.withColumn("type", fn.coalesce("type", "now"))
        .withColumn("left", fn.concat("left", fn.coalesce(parted, fn.array().cast(CLIENTS))))
        .withColumn("run", fn.sum(fn.when(fn.col("converts"), 0).otherwise(1)).over(history))
        .withColumns(latest)
        .where(~fn.col("converts"))
        .withColumn("ended", fn.lead("at").over(history))
        .where(~fn.col("tombstone"))
        .select(
            "group", "type", "generation", fn.col("at").alias("began"), "ended", "protocol", "leader",
            "members", "joined", "left", *_STATE,
        )
    )  # fmt: skip


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
