"""Queries the coordinator's log for all data of a report. Only small tables come to the driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from kshim.spark.cluster import end_offsets, oldest_record_ms, topic_names
from kshim.spark.commits import OF, group_lag, stuck_seconds
from kshim.spark.holding import holding, unrevoked
from kshim.spark.reasons import read_reasons, with_reasons
from kshim.spark.rebalancing import flapping, rebalances
from kshim.spark.report.history import (
    commit_counts,
    commits_by_step,
    kind,
    lag_by_step,
    latest_of,
    read_ends_by_step,
    rebalances_by_step,
)
from kshim.spark.report.values import (
    MOST_ROWS,
    Asked,
    Behind,
    Flapping,
    Group,
    Mark,
    Rebalance,
    Report,
    Steps,
    Unrevoked,
)
from kshim.spark.rows import HISTORY, MEMBERS, OFFSET, decode
from kshim.spark.source import END_OFFSETS, read_offsets_log, waiting_seconds
from kshim.spark.values import frame_of

STEPS = 120
MOST_GROUPS = 24
COLLECTED = MOST_ROWS + 1
"""One row more than a table shows, so that the page can say that there are more."""

ShowStep = Callable[[str], None]


def gather(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    asked: Asked,
    last_s: float | None,
    show_step: ShowStep = lambda _: None,
    only: Sequence[str] = (),
) -> Report:
    """Make the report on all groups at `bootstrap`, for the whole log or for the last `last_s` seconds.

    topic: the coordinator's log. show_step: called with a text about the present step. only: the groups to
    report on; empty for all. Raises PipelineError.
    """
    now_ms = int(time.time() * 1000)
    show_step(f"reading {topic} of {bootstrap}")
    log = read_offsets_log(spark, bootstrap, topic=topic)
    oldest_ms = oldest_record_ms(bootstrap, topic) or now_ms - 1000
    began_ms = oldest_ms if last_s is None else max(oldest_ms, now_ms - round(last_s * 1000))
    steps = Steps(began_ms, max(now_ms, began_ms + STEPS), STEPS)
    by_step = commits_by_step(_of_groups(decode(log, OFFSET), only), steps).cache()
    show_step("commits: counting and sorting them")
    totals = by_step.groupBy("group").agg(fn.sum("commits").alias("commits")).cache()
    counted = totals.agg(fn.count("*").alias("groups"), fn.sum("commits").alias("commits")).collect()[0]
    show_step("lag: how far each group is behind")
    latest = latest_of(by_step).cache()
    behind, topics = _behind(spark, bootstrap, latest, asked.stuck_for_s)
    lag = lag_by_step(by_step, read_ends_by_step(spark, bootstrap, topics, steps), steps).cache()
    show_step("rebalances: when, and why")
    known = read_reasons(spark, bootstrap)
    began = fn.unix_millis("began") >= began_ms
    begun = rebalances(_of_groups(decode(log, *HISTORY), only)).where(began)
    found = with_reasons(begun, known).withColumn("kind", kind()).cache()
    marks = rebalances_by_step(found, steps).cache()
    names = _names(totals, lag, marks)
    return Report(
        bootstrap=bootstrap,
        made_ms=now_ms,
        steps=steps,
        asked=asked,
        commits=counted.commits or 0,
        rebalances=found.count(),
        group_count=counted.groups,
        groups=_groups(names, lag, commit_counts(by_step), marks),
        behind=behind,
        unrevoked=_unrevoked(_of_groups(decode(log, *MEMBERS), only), bootstrap, asked),
        flapping=_flapping(found, asked),
        latest=_latest(found),
        causes=_causes(found) if known is not None else (),
    )


def _of_groups(rows: DataFrame, only: Sequence[str]) -> DataFrame:
    return rows.where(fn.col("group").isin(*only)) if only else rows


def _names(totals: DataFrame, lag: DataFrame, marks: DataFrame) -> list[str]:
    """The groups that need most attention, by their rank in lag or in number of rebalances."""
    worst = lag.groupBy("group").agg(fn.max("lag").alias("lag"))
    often = marks.groupBy("group").agg(fn.sum("rebalances").alias("rebalances"))
    groups = totals.select("group").unionByName(often.select("group")).distinct()
    both = groups.join(worst, "group", "left").join(often, "group", "left").na.fill(0)
    columns = "lag", "rebalances"
    leading = [
        [row.group for row in both.orderBy(fn.desc(column), "group").limit(MOST_GROUPS).collect()]
        for column in columns
    ]
    in_turn = [name for pair in zip(*leading, strict=True) for name in pair]
    return list(dict.fromkeys(in_turn))[:MOST_GROUPS]


def _groups(names: list[str], lag: DataFrame, commits: DataFrame, marks: DataFrame) -> tuple[Group, ...]:
    groups = {name: Group(name) for name in names}

    def of_names(frame: DataFrame) -> list[Row]:
        rows: list[Row] = frame.where(fn.col("group").isin(names)).collect() if names else []
        return rows

    for row in of_names(lag):
        groups[row.group].lag[row.step] = row.lag
    for row in of_names(commits):
        groups[row.group].commits[row.step] = row.commits
    for row in of_names(marks):
        groups[row.group].marks.append(Mark(row.step, row.kind, row.rebalances))
    return tuple(groups.values())


def _behind(
    spark: SparkSession, bootstrap: str, latest: DataFrame, stuck_for_s: float
) -> tuple[tuple[Behind, ...], list[str]]:
    """Return the partitions with the most lag, stuck ones first, and the names of all topics."""
    topics = [row.topic for row in latest.select("topic").distinct().collect()]
    lag = group_lag(latest, frame_of(spark, end_offsets(bootstrap, topics), END_OFFSETS))
    is_stuck = (fn.col("lag") > 0) & (stuck_seconds() >= stuck_for_s)
    ranked = lag.withColumn("stuck_seconds", fn.when(is_stuck, stuck_seconds()))
    order = fn.desc_nulls_last("stuck_seconds"), fn.desc_nulls_last("lag"), *OF
    rows = ranked.orderBy(*order).limit(COLLECTED).collect()
    seconds = waiting_seconds(bootstrap, rows)
    fields = [
        {name: row[name] for name in Behind._fields} | {"lag_seconds": waited}
        for row, waited in zip(rows, seconds, strict=True)
    ]
    return tuple(Behind(**each) for each in fields), topics


def _unrevoked(rows: DataFrame, bootstrap: str, asked: Asked) -> tuple[Unrevoked, ...]:
    members = unrevoked(holding(rows), asked.stuck_for_s, topic_names(bootstrap))
    longest = members.orderBy(fn.desc("waiting_seconds"), "group").limit(COLLECTED).collect()
    return tuple(
        Unrevoked(row.group, _client(row), row.waiting_seconds, row.rebalance_timeout_ms, tuple(row.revoking))
        for row in longest
    )


def _flapping(found: DataFrame, asked: Asked) -> tuple[Flapping, ...]:
    rows = flapping(found, asked.within, asked.at_least).orderBy(fn.desc("rebalances"), "group")
    bounds = (fn.unix_millis(f"window.{end}").alias(end) for end in ("start", "end"))
    return tuple(
        Flapping(row.group, row.start, row.end, row.rebalances, _client(row), row.cause)
        for row in rows.select("*", *bounds).limit(COLLECTED).collect()
    )


def _latest(found: DataFrame) -> tuple[Rebalance, ...]:
    rows = found.withColumn("began_ms", fn.unix_millis("began"))
    newest = rows.orderBy(fn.desc("began_ms"), "group").limit(MOST_ROWS).collect()
    return tuple(_rebalance(row) for row in newest)


def _rebalance(row: Row) -> Rebalance:
    found = {name: row[name] for name in Rebalance._fields}
    joined, left = (tuple(map(_client, found[name])) for name in ("joined", "left"))
    return Rebalance(**{**found, "joined": joined, "left": left, "story": tuple(row.story or ())})


def _client(row: Row) -> str | None:
    return row.client_id and f"{row.client_id}@{(row.client_host or '').removeprefix('/')}"


def _causes(found: DataFrame) -> tuple[tuple[str, int], ...]:
    counted = found.where(fn.col("cause").isNotNull()).groupBy("cause").agg(fn.count("*").alias("times"))
    return tuple((row.cause, row.times) for row in counted.orderBy(fn.desc("times"), "cause").collect())
