"""What `kshim pipeline` asks, each question as a function of the session: once, or again and again of a
stream.
"""

from __future__ import annotations

import tempfile
import time
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

from kshim.spark import commits, rebalances, snapshot
from kshim.spark.command import Options, Out
from kshim.spark.connector import check_java, connector_settings
from kshim.spark.decode import decode
from kshim.spark.errors import PipelineError
from kshim.spark.kept import KeptTable
from kshim.spark.source import read_end_offsets, read_head_times, read_offsets_log
from kshim.tables import print_table

MOST_ROWS = 1000
"""On the console; Parquet and tables get all."""

Told = Callable[[str], None]
Question = Callable[..., None]
"""(session, options, tell, **arguments)"""


def answer(question: str, options: Options, arguments: Mapping[str, Any]) -> None:
    """Ask `question` of the cluster and put its rows where they shall go. Raises PipelineError,
    SparkUnavailable.
    """
    console = Console(stderr=True)
    with console.status("starting Spark") as status, _session(options) as spark:
        try:
            QUESTIONS[question](spark, options, status.update, **arguments)
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
    check_java(pyspark.__version__)
    if "spark.jars" not in settings:
        settings = connector_settings(pyspark.__version__) | settings
    builder = SparkSession.builder.appName("kshim pipeline")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise PipelineError(f"Spark did not start: {_first_line(error)}") from error
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


# ---- questions


def _lag(spark: SparkSession, options: Options, tell: Told) -> None:
    _of_commits(spark, options, tell, lambda lag: lag.orderBy(fn.desc_nulls_last("lag"), *commits.OF))


def _stuck(spark: SparkSession, options: Options, tell: Told, *, for_s: float) -> None:
    _of_commits(spark, options, tell, lambda lag: commits.stuck(lag, for_s).orderBy(fn.desc("stuck_seconds")))


def _of_commits(
    spark: SparkSession, options: Options, tell: Told, shown: Callable[[DataFrame], DataFrame]
) -> None:
    def show(latest: DataFrame) -> None:
        _put(shown(_lag_of(spark, options.bootstrap, latest.cache())), options.out, append=options.stream)

    tell(f"reading the log of {options.bootstrap}")
    rows = decode(read_offsets_log(spark, options.bootstrap, stream=options.stream))
    if not options.stream:
        show(commits.latest_commits(rows))
        return

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        return commits.latest_commits(batch, known)

    with _kept(spark, options, rows, merge, "append") as table:
        while True:
            table.read(show)
            time.sleep(options.every_s)


def _lag_of(spark: SparkSession, bootstrap: str, latest: DataFrame) -> DataFrame:
    ends = read_end_offsets(spark, bootstrap, latest)
    heads = read_head_times(spark, bootstrap, commits.group_lag(latest, ends))
    return commits.group_lag(latest, ends, heads)


def _rebalances(spark: SparkSession, options: Options, tell: Told) -> None:
    generations = _generations(spark, options, tell)
    if not options.stream:
        _put(generations.orderBy("began", "group", "generation"), options.out, append=False)
        return

    def show(batch: DataFrame, _: int) -> None:
        _put(batch.orderBy("began", "group", "generation"), options.out, append=True)

    with _state(options) as path:
        writer = generations.writeStream.foreachBatch(show).outputMode("update")
        query = writer.option("checkpointLocation", path).trigger(processingTime=_interval(options)).start()
        _until_interrupted(query)


def _flapping(spark: SparkSession, options: Options, tell: Told, *, within: str, at_least: int) -> None:
    def show(generations: DataFrame) -> None:
        found = rebalances.flapping(generations, within, at_least)
        _put(found.orderBy(fn.desc("rebalances"), "group"), options.out, append=options.stream)

    generations = _generations(spark, options, tell)
    if not options.stream:
        show(generations)
        return
    oldest = fn.current_timestamp() - fn.expr(f"INTERVAL {within}")

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        every = batch if known is None else known.unionByName(batch)
        recent = every.where(fn.col("began") >= oldest).dropDuplicates(["group", "generation", "began"])
        return recent.localCheckpoint()

    with _kept(spark, options, generations, merge, "update") as table:
        while True:
            table.read(show)
            time.sleep(options.every_s)


def _generations(spark: SparkSession, options: Options, tell: Told) -> DataFrame:
    tell(f"reading the log of {options.bootstrap}")
    return rebalances.rebalances(decode(read_offsets_log(spark, options.bootstrap, stream=options.stream)))


def _snapshot(spark: SparkSession, options: Options, tell: Told, *, path: str) -> None:
    tell(f"reading the log of {options.bootstrap}")
    latest = commits.latest_commits(decode(read_offsets_log(spark, options.bootstrap))).cache()
    tell(f"writing {path}")
    snapshot.snapshot(latest, path)
    groups = latest.select("group").distinct().count()
    Console(stderr=True).print(f"{latest.count()} offsets of {groups} groups are in {path}")


def _restore(spark: SparkSession, options: Options, tell: Told, *, path: str, dry_run: bool) -> None:
    tell(f"asking {options.bootstrap}")
    _put(snapshot.restore(spark, path, options.bootstrap, dry_run=dry_run), options.out, append=False)


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


@contextmanager
def _kept(
    spark: SparkSession,
    options: Options,
    stream: DataFrame,
    merge: Callable[[DataFrame | None, DataFrame], DataFrame],
    output_mode: str,
) -> Iterator[KeptTable]:
    with _state(options) as path:
        table = KeptTable(spark, path, merge)
        query = table.follow(stream, output_mode)
        try:
            yield table
        finally:
            query.stop()


def _interval(options: Options) -> str:
    return f"{int(options.every_s * 1000)} milliseconds"


def _until_interrupted(query: Any) -> None:
    try:
        query.awaitTermination()
    finally:
        query.stop()


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
        return (
            ", ".join(f"{client.client_id}@{client.client_host.removeprefix('/')}" for client in value) or "-"
        )
    if hasattr(value, "asDict"):
        return " to ".join(_text(part) for part in value)
    return str(value)
