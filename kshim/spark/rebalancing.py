"""Rebalances: one row for each generation of a group, with the members that joined and left, and the leader.

Flapping: groups that rebalance again and again.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kshim.spark.generations import generations

ROW = ("group", "type", "generation", "began", "ended", "protocol", "leader", "members", "joined", "left")


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
