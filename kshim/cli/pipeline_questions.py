"""The questions of `kshim pipeline`: each is a function that asks once, or repeatedly with --stream."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from rich.console import Console

from kshim.cli.pipeline_options import Options, Out
from kshim.cli.tables import print_table
from kshim.spark import backup, commits, rebalancing
from kshim.spark.cluster import check_answers
from kshim.spark.connector import connector_settings, default_cache
from kshim.spark.errors import PipelineError
from kshim.spark.kept import KeptTable, Merge
from kshim.spark.rows import decode
from kshim.spark.session import own_session
from kshim.spark.source import read_end_offsets, read_head_times, read_offsets_log

FOR_ONE_MACHINE = {"spark.sql.shuffle.partitions": "32", "spark.ui.enabled": "false"}
"""Spark's default of 200 is for a cluster; with only a few, Spark would sort millions of commits on disk."""
JAVA_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
    "-XX:Tier4BackEdgeThreshold=1000000",
)
"""Only code that runs for long is optimised: for a short question, optimising would be half the work."""
MOST_ROWS = 1000
"""The console shows so many rows; Parquet and tables get all."""

Tell = Callable[[str], None]
Question = Callable[..., None]
"""(session, options, tell, **arguments)"""


def answer(question: str, options: Options, arguments: Mapping[str, Any]) -> None:
    """Answer one of QUESTIONS, and write the rows to `options.out`.

    Raises PipelineError and SparkUnavailable.
    """
    console = Console(stderr=True)
    with console.status(f"asking {options.bootstrap}") as status:
        check_answers(options.bootstrap)
        status.update("starting Spark")
        with _session(options) as spark:
            _ask(question, spark, options, status.update, arguments)


def _ask(
    question: str, spark: SparkSession, options: Options, tell: Tell, arguments: Mapping[str, Any]
) -> None:
    try:
        QUESTIONS[question](spark, options, tell, **arguments)
    except KeyboardInterrupt:
        pass
    except PySparkException as error:
        raise PipelineError(_first_line(error)) from error


@contextmanager
def _session(options: Options) -> Iterator[SparkSession]:
    settings = {
        "spark.master": "local[*]",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    for setting in options.conf:
        key, equals, value = setting.partition("=")
        if not equals:
            raise PipelineError(f"--conf {setting}: expected KEY=VALUE, as in --conf spark.master=yarn")
        settings[key.strip()] = value.strip()
    is_local = settings["spark.master"].startswith("local")
    if is_local:
        settings = FOR_ONE_MACHINE | settings
    if "spark.jars" not in settings:
        settings = connector_settings(pyspark.__version__) | settings
    with own_session("kshim pipeline", settings, default_cache(), JAVA_OPTIONS if is_local else ()) as spark:
        yield spark


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


# ---- questions


def _lag(spark: SparkSession, options: Options, tell: Tell) -> None:
    _of_commits(spark, options, tell, lambda lag: lag.orderBy(fn.desc_nulls_last("lag"), *commits.OF))


def _stuck(spark: SparkSession, options: Options, tell: Tell, *, for_s: float) -> None:
    _of_commits(spark, options, tell, lambda lag: commits.stuck(lag, for_s).orderBy(fn.desc("stuck_seconds")))


def _of_commits(
    spark: SparkSession, options: Options, tell: Tell, shown: Callable[[DataFrame], DataFrame]
) -> None:
    def show(latest: DataFrame) -> None:
        latest.cache()
        _put(shown(_lag_of(spark, options.bootstrap, latest)), options.out, append=options.stream)
        latest.unpersist()

    rows = _rows(spark, options, tell)
    if not options.stream:
        show(commits.latest_commits(rows))
        return

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        return commits.latest_commits(batch, known)

    _again_and_again(spark, options, rows, merge, show)


def _lag_of(spark: SparkSession, bootstrap: str, latest: DataFrame) -> DataFrame:
    ends = read_end_offsets(spark, bootstrap, latest)
    heads = read_head_times(spark, bootstrap, commits.group_lag(latest, ends))
    return commits.group_lag(latest, ends, heads)


def _rebalances(spark: SparkSession, options: Options, tell: Tell) -> None:
    def show(found: DataFrame) -> None:
        rows = rebalancing.shown(found).orderBy("began", "group", "generation")
        _put(rows, options.out, append=options.stream)

    rows = _rows(spark, options, tell)
    if not options.stream:
        show(rebalancing.generations(rows))
        return

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        lasting = None if known is None else known.where(fn.col("ended").isNull())
        return rebalancing.generations(batch, lasting)

    with _state(options) as path:
        query = (
            KeptTable(spark, path, merge, show)
            .following(rows)
            .trigger(processingTime=_every(options))
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()


def _flapping(spark: SparkSession, options: Options, tell: Tell, *, within: str, at_least: int) -> None:
    def show(found: DataFrame) -> None:
        groups = rebalancing.flapping(rebalancing.shown(found), within, at_least)
        _put(groups.orderBy(fn.desc("rebalances"), "group"), options.out, append=options.stream)

    rows = _rows(spark, options, tell)
    if not options.stream:
        show(rebalancing.generations(rows))
        return
    recent = fn.col("began") >= fn.current_timestamp() - fn.expr(f"2 * INTERVAL {within}")

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        return rebalancing.generations(batch, known).where(fn.col("ended").isNull() | recent)

    _again_and_again(spark, options, rows, merge, show)


def _rows(spark: SparkSession, options: Options, tell: Tell) -> DataFrame:
    tell(f"reading the log of {options.bootstrap}")
    return decode(read_offsets_log(spark, options.bootstrap, stream=options.stream))


def _snapshot(spark: SparkSession, options: Options, tell: Tell, *, path: str) -> None:
    latest = commits.latest_commits(_rows(spark, options, tell)).cache()
    tell(f"writing {path}")
    backup.snapshot(latest, path)
    groups = latest.select("group").distinct().count()
    Console(stderr=True).print(f"{latest.count()} offsets of {groups} groups are in {path}")


def _restore(spark: SparkSession, options: Options, tell: Tell, *, path: str, dry_run: bool) -> None:
    tell(f"asking {options.bootstrap}")
    _put(backup.restore(spark, path, options.bootstrap, dry_run=dry_run), options.out, append=False)


QUESTIONS: dict[str, Question] = {
    "lag": _lag,
    "stuck": _stuck,
    "rebalances": _rebalances,
    "flapping": _flapping,
    "snapshot": _snapshot,
    "restore": _restore,
}


# ---- streams


@contextmanager
def _state(options: Options) -> Iterator[str]:
    if options.state is not None:
        yield options.state
        return
    with tempfile.TemporaryDirectory(prefix="kshim-pipeline-", ignore_cleanup_errors=True) as path:
        yield Path(path).as_uri()


def _again_and_again(
    spark: SparkSession, options: Options, stream: DataFrame, merge: Merge, show: Callable[[DataFrame], None]
) -> None:
    """Merge `stream` into a table, and show the table every `options.every_s` seconds until Ctrl-C."""
    with _state(options) as path:
        table = KeptTable(spark, path, merge)
        query = table.following(stream).start()
        try:
            while not query.awaitTermination(options.every_s):
                table.read(show)
        finally:
            query.stop()


def _every(options: Options) -> str:
    return f"{int(options.every_s * 1000)} milliseconds"


# ---- rows


def _put(rows: DataFrame, out: Out, *, append: bool) -> None:
    if out.kind == "console":
        shown = [[_text(value) for value in row] for row in rows.limit(MOST_ROWS).collect()]
        print_table(rows.columns, shown)
    elif out.kind == "parquet":
        rows.write.mode("append" if append else "error").parquet(out.name)
    else:
        rows.write.mode("append" if append else "error").saveAsTable(out.name)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list):
        clients = (f"{client.client_id}@{client.client_host.removeprefix('/')}" for client in value)
        return ", ".join(clients) or "-"
    if hasattr(value, "asDict"):
        return " to ".join(_text(part) for part in value)
    return str(value)
