"""Committed offsets put by as Parquet, and given back to groups that have no members.

Never by writing into `__consumer_offsets`: what is restored goes through OffsetCommit, and so through the
group's coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from kshim.spark.cluster import GroupOffset, commit_offsets, committed
from kshim.spark.errors import PipelineError

RESTORED = "group string, topic string, partition int, was long, offset long, outcome string"
SAME, WOULD, DONE = "same", "would be restored", "restored"

_COLUMNS = ("group", "topic", "partition", "offset", "leader_epoch", "metadata", "commit_time")


def snapshot(commits: DataFrame, path: str) -> None:
    """Keep the rows of `latest_commits` as Parquet at `path`, in place of what was there."""
    commits.select(*_COLUMNS).write.mode("overwrite").parquet(path)


def restore(spark: SparkSession, path: str, bootstrap: str, *, dry_run: bool = True) -> DataFrame:
    """Commit what `snapshot` kept, for groups that have no members now; others are refused by Kafka.

    One row for each partition of each group: RESTORED. was: what is committed now, null for nothing. outcome:
    "same"; "restored", or with dry_run "would be restored"; else the error that Kafka answered. Groups are
    taken one by one, so the driver holds the offsets of one at a time and the rows of the outcome.
    """
    try:
        kept = spark.read.parquet(path)
    except PySparkException as error:
        raise PipelineError(f"{path}: no snapshot there; `kshim pipeline snapshot` writes one") from error
    missing = set(_COLUMNS) - set(kept.columns)
    if missing:
        raise PipelineError(f"{path}: no snapshot, it has no column {min(missing)}")
    ordered = kept.orderBy("group", "topic", "partition")
    rows = [
        outcome
        for group, offsets in groupby(ordered.toLocalIterator(), key=attrgetter("group"))
        for outcome in _restore(bootstrap, group, offsets, dry_run)
    ]
    return spark.createDataFrame(rows, RESTORED)


def _restore(
    bootstrap: str, group: str, offsets: Iterable[Row], dry_run: bool
) -> Iterator[tuple[str, str, int, int | None, int, str]]:
    now = committed(bootstrap, group)
    wanted = [GroupOffset(it.topic, it.partition, it.offset, it.leader_epoch, it.metadata) for it in offsets]
    differing = [it for it in wanted if now.get((it.topic, it.partition)) != it.offset]
    errors = {} if dry_run or not differing else commit_offsets(bootstrap, group, differing)
    for it in wanted:
        at = (it.topic, it.partition)
        changed = WOULD if dry_run else errors.get(at) or DONE
        yield group, *at, now.get(at), it.offset, changed if it in differing else SAME
