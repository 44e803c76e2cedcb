"""The reason for each rebalance, from the topic in which kshim records rebalances, if it exists.

The coordinator's log says which members came and went, but not what set the rebalance off, nor how long it
took. The topic has one JSON object for each rebalance. Unknown fields are ignored, and missing ones are null.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from kshim.spark.source import read_topic

REBALANCES_TOPIC = "kshim.rebalances"

_MEMBER = "struct<member_id:string,client_id:string,host:string,instance_id:string>"
_RECORD = (
    f"`group` string, generation int, cause string, member {_MEMBER}, reason string, "
    "began_ms bigint, assigned_ms bigint, completed_ms bigint, ended_ms bigint, "
    "moved array<struct<topic:string,`partition`:int,unowned_ms:bigint>>, story array<string>"
)
_LATE_MS = 5_000
"""Longest time between the end of a rebalance and the coordinator's record of its generation."""

REASON = ("cause", "caused_by", "reason", "took_ms", "moved", "unowned_ms", "story")
"""The columns that a reason adds to a rebalance.

cause: what set the rebalance off, in words. caused_by: the client, as CLIENT_ID@HOST. reason: the client's
reason. took_ms: the time until every member had its partitions; null if that never happened. moved: how many
partitions changed hands. unowned_ms: the longest time that one of these had no owner. story: a description,
in sentences.
"""
_TYPES = ("string", "string", "string", "bigint", "int", "bigint", "array<string>")


def read_reasons(spark: SparkSession, bootstrap: str) -> DataFrame | None:
    """The rows of `decode_reasons` for the topic at `bootstrap`; None if the topic does not exist."""
    log = read_topic(spark, bootstrap, REBALANCES_TOPIC)
    return None if log is None else decode_reasons(log)


def decode_reasons(log: DataFrame) -> DataFrame:
    """One row for each record of the topic, from the columns of Spark's Kafka source.

    Columns: group, generation, began_ms, until_ms, and those of REASON. Records that do not describe a
    rebalance are left out.
    """
    record = fn.from_json(fn.col("value").cast("string"), _RECORD)
    rows = log.select(record.alias("it")).select("it.*")
    unowned = fn.transform("moved", lambda it: it["unowned_ms"])
    return rows.where(
        fn.col("group").isNotNull() & fn.col("generation").isNotNull() & fn.col("began_ms").isNotNull()
    ).select(
        "group",
        "generation",
        "began_ms",
        fn.greatest("began_ms", "assigned_ms", "completed_ms", "ended_ms").alias("until_ms"),
        "cause",
        _name(fn.col("member")).alias("caused_by"),
        fn.when(fn.col("reason") != "", fn.col("reason")).alias("reason"),
        (fn.col("completed_ms") - fn.col("began_ms")).alias("took_ms"),
        fn.when(fn.col("moved").isNotNull(), fn.size("moved")).alias("moved"),
        fn.array_max(unowned).alias("unowned_ms"),
        "story",
    )


def _name(member: Column) -> Column:
    client = fn.coalesce(member["client_id"], member["member_id"])
    host = fn.regexp_replace(fn.coalesce(member["host"], fn.lit("")), "^/", "")
    return fn.when(host != "", fn.concat(client, fn.lit("@"), host)).otherwise(client)


def with_reasons(rebalances: DataFrame, reasons: DataFrame | None) -> DataFrame:
    """Add the columns of REASON to the rows of `rebalances`. They are null if no reason is known.

    After its deletion, a group begins again with generation 1, so the time has to match, too.
    """
    if reasons is None:
        unknown = {name: fn.lit(None).cast(kind) for name, kind in zip(REASON, _TYPES, strict=True)}
        return rebalances.withColumns(unknown)
    began_ms = fn.unix_millis("began")
    same = (
        (fn.col("r.group") == fn.col("why.group"))
        & (fn.col("r.generation") == fn.col("why.generation"))
        & began_ms.between(fn.col("why.began_ms"), fn.col("why.until_ms") + _LATE_MS)
    )
    once = reasons.groupBy("group", "generation", "began_ms").agg(
        fn.max("until_ms").alias("until_ms"),
        fn.max_by(fn.struct(*REASON), fn.coalesce("took_ms", fn.lit(-1))).alias("of"),
    )
    joined = rebalances.alias("r").join(once.alias("why"), same, "left")
    return joined.select("r.*", *(f"why.of.{name}" for name in REASON))
