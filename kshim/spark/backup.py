"""Save committed offsets as Parquet, and restore them to groups that have no members.

Restored offsets go through OffsetCommit, and so through the group's coordinator; nothing is written directly
into `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from kshim.spark.cluster import GroupOffset, commit_offsets, committed
from kshim.spark.errors import PipelineError
from kshim.spark.values import frame_of

RESTORED = {
    "group": "string",
    "topic": "string",
    "partition": "int",
    "was": "bigint",
    "offset": "bigint",
    "outcome": "string",
}
SAME, WOULD, DONE = "same", "would be restored", "restored"

_COLUMNS = ("group", "topic", "partition", "offset", "leader_epoch", "metadata", "commit_time")


def snapshot(commits: DataFrame, path: str) -> None:
    """Save the rows of `latest_commits` as Parquet at `path`, in place of any earlier snapshot."""
    commits.select(*_COLUMNS).write.mode("overwrite").parquet(path)


def restore(spark: SparkSession, path: str, bootstrap: str, *, dry_run: bool = True) -> DataFrame:
    """Commit the offsets that `snapshot` saved. Kafka refuses them for groups that have members now.

    Returns one row for each partition of each group, with the columns of RESTORED. was: the offset committed
    before, or null. outcome: "same"; "restored", or with dry_run "would be restored"; or Kafka's error. The
    driver holds the offsets of one group at a time, and the resulting rows.
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
    return frame_of(spark, rows, RESTORED)


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
