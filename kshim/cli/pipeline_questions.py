"""The questions of `kshim pipeline`. Each is a function that asks once, or with --stream again and again."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from rich.console import Console
from rich.text import Text

from kshim.cli.pipeline_options import Options, Out
from kshim.cli.pipeline_session import ShowStep, session
from kshim.cli.tables import print_table
from kshim.recorder.one_line import on_one_line
from kshim.spark import backup, commits, holding, rebalancing
from kshim.spark.cluster import end_offsets, record_count, topic_names
from kshim.spark.errors import PipelineError, SparkFailed
from kshim.spark.generations import generations
from kshim.spark.kept import KeptTable, Merge
from kshim.spark.output import reason
from kshim.spark.reasons import REASON, read_reasons, with_reasons
from kshim.spark.report.gather import gather
from kshim.spark.report.page import html
from kshim.spark.report.values import Asked
from kshim.spark.rows import HISTORY, MEMBERS, OFFSET, decode
from kshim.spark.source import (
    END_OFFSETS,
    find_offsets_log,
    read_end_offsets,
    read_head_times,
    read_offsets_log,
    waiting_seconds,
)
from kshim.spark.values import frame_of

MOST_ROWS = 1000
"""Most rows on the console, which says so if there are more. Parquet and tables get all rows."""

Question = Callable[..., None]
"""Called with (session, options, show_step, **arguments)."""


def answer(question: str, options: Options, arguments: Mapping[str, object]) -> None:
    """Answer one of QUESTIONS, and write the rows to `options.out`.

    If standard error is a terminal, a line on it says what is being done. Raises PipelineError,
    SparkUnavailable and SparkFailed.
    """
    if not options.verbose:
        for chatty in ("kafka", "py4j"):
            logging.getLogger(chatty).setLevel(logging.CRITICAL)
    console = Console(stderr=True)
    with console.status("") as status:

        def show_step(text: str) -> None:
            status.update(Text(on_one_line(text)))

        show_step(f"asking {options.bootstrap}")
        options = options._replace(log=options.log or find_offsets_log(options.bootstrap))
        records = record_count(options.bootstrap, options.log)
        with session(options, records, show_step) as spark:
            _ask(question, spark, options, show_step, arguments)


def _ask(
    question: str, spark: SparkSession, options: Options, show_step: ShowStep, arguments: Mapping[str, object]
) -> None:
    try:
        QUESTIONS[question](spark, options, show_step, **arguments)
    except KeyboardInterrupt:
        pass
    except (AnalysisException, IllegalArgumentException, ParseException) as error:
        raise PipelineError(f"Spark says: {reason(error)}") from error
    except (Py4JError, PySparkException) as error:
        raise SparkFailed(f"Spark has failed: {reason(error)}") from error


# ---- questions


def _lag(spark: SparkSession, options: Options, show_step: ShowStep) -> None:
    _of_commits(spark, options, show_step, lambda lag: lag.orderBy(fn.desc_nulls_last("lag"), *commits.OF))


def _stuck(spark: SparkSession, options: Options, show_step: ShowStep, *, for_s: float) -> None:
    _of_commits(
        spark, options, show_step, lambda lag: commits.stuck(lag, for_s).orderBy(fn.desc("stuck_seconds"))
    )


def _of_commits(
    spark: SparkSession, options: Options, show_step: ShowStep, shown: Callable[[DataFrame], DataFrame]
) -> None:
    def show(latest: DataFrame) -> None:
        if options.out.kind == "console":
            _print_lag(spark, options.bootstrap, latest, shown)
            return
        latest.cache()
        _put(shown(_lag_of(spark, options.bootstrap, latest)), options.out, append=options.stream)
        latest.unpersist()

    rows = _rows(spark, options, show_step, OFFSET)
    if not options.stream:
        show(commits.latest_commits(rows))
        return

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        return commits.latest_commits(batch, known)

    _again_and_again(spark, options, rows, merge, show)


def _print_lag(
    spark: SparkSession, bootstrap: str, latest: DataFrame, shown: Callable[[DataFrame], DataFrame]
) -> None:
    """Print lag in one query.

    The console has few rows, so the driver asks when their next records were written.
    """
    ends = frame_of(spark, end_offsets(bootstrap), END_OFFSETS)
    lag = shown(commits.group_lag(latest, ends))
    rows = _first(lag)
    waiting = waiting_seconds(bootstrap, rows)
    _print(lag.columns, [row.asDict() | {"lag_seconds": s} for row, s in zip(rows, waiting, strict=True)])


def _lag_of(spark: SparkSession, bootstrap: str, latest: DataFrame) -> DataFrame:
    ends = read_end_offsets(spark, bootstrap, latest)
    heads = read_head_times(spark, bootstrap, commits.group_lag(latest, ends))
    return commits.group_lag(latest, ends, heads)


def _rebalances(spark: SparkSession, options: Options, show_step: ShowStep) -> None:
    def show(found: DataFrame) -> None:
        reasons = read_reasons(spark, options.bootstrap)
        rows = with_reasons(rebalancing.shown(found), reasons).orderBy("began", "group", "generation")
        if options.out.kind == "console":
            rows = rows.drop(*(REASON if reasons is None else ("story",)))
        _put(rows, options.out, append=options.stream)

    rows = _rows(spark, options, show_step, *HISTORY)
    if not options.stream:
        show(generations(rows))
        return

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        lasting = None if known is None else known.where(fn.col("ended").isNull())
        return generations(batch, lasting)

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


def _flapping(
    spark: SparkSession, options: Options, show_step: ShowStep, *, within: str, at_least: int
) -> None:
    def show(found: DataFrame) -> None:
        why = with_reasons(rebalancing.shown(found), read_reasons(spark, options.bootstrap))
        groups = rebalancing.flapping(why, within, at_least)
        _put(groups.orderBy(fn.desc("rebalances"), "group"), options.out, append=options.stream)

    rows = _rows(spark, options, show_step, *HISTORY)
    if not options.stream:
        show(generations(rows))
        return
    recent = fn.col("began") >= fn.current_timestamp() - fn.expr(f"2 * INTERVAL {within}")

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        return generations(batch, known).where(fn.col("ended").isNull() | recent)

    _again_and_again(spark, options, rows, merge, show)


def _unrevoked(spark: SparkSession, options: Options, show_step: ShowStep, *, for_s: float) -> None:
    def show(members: DataFrame) -> None:
        found = holding.unrevoked(members, for_s, topic_names(options.bootstrap))
        _put(found.orderBy(fn.desc("waiting_seconds")), options.out, append=options.stream)

    rows = _rows(spark, options, show_step, *MEMBERS)
    if not options.stream:
        show(holding.holding(rows))
        return

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        return holding.holding(batch, known)

    _again_and_again(spark, options, rows, merge, show)


def _rows(spark: SparkSession, options: Options, show_step: ShowStep, *kinds: str) -> DataFrame:
    show_step(f"reading {options.log} of {options.bootstrap}")
    log = read_offsets_log(spark, options.bootstrap, topic=options.log, stream=options.stream)
    rows = decode(log, *kinds)
    return rows.where(fn.col("group").isin(*options.groups)) if options.groups else rows


def _snapshot(spark: SparkSession, options: Options, show_step: ShowStep, *, path: str) -> None:
    latest = commits.latest_commits(_rows(spark, options, show_step, OFFSET)).cache()
    show_step(f"writing {path}")
    backup.snapshot(latest, path)
    groups = latest.select("group").distinct().count()
    Console(stderr=True).print(
        Text(on_one_line(f"{latest.count()} offsets of {groups} groups are in {path}"))
    )


def _restore(spark: SparkSession, options: Options, show_step: ShowStep, *, path: str, dry_run: bool) -> None:
    show_step(f"asking {options.bootstrap}")
    _put(backup.restore(spark, path, options.bootstrap, dry_run=dry_run), options.out, append=False)


def _report(
    spark: SparkSession,
    options: Options,
    show_step: ShowStep,
    *,
    directory: Path,
    last_s: float | None,
    asked: Mapping[str, Any],
) -> None:
    found = gather(spark, options.bootstrap, options.log, Asked(**asked), last_s, show_step, options.groups)
    page = directory / "index.html"
    try:
        page.write_text(html(found), encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"--out {directory}: cannot write there: {error.strerror}") from error
    click.echo(page)


QUESTIONS: dict[str, Question] = {
    "lag": _lag,
    "stuck": _stuck,
    "rebalances": _rebalances,
    "flapping": _flapping,
    "unrevoked": _unrevoked,
    "report": _report,
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
        _print(rows.columns, [row.asDict() for row in _first(rows)])
    elif out.kind == "parquet":
        rows.write.mode("append" if append else "error").parquet(out.name)
    else:
        rows.write.mode("append" if append else "error").saveAsTable(out.name)


def _first(rows: DataFrame) -> list[Row]:
    """The first MOST_ROWS rows. A line on standard error says if there are more."""
    found: list[Row] = rows.limit(MOST_ROWS + 1).collect()
    if len(found) > MOST_ROWS:
        said = (
            f"only the first {MOST_ROWS:,} rows are shown: --group shows fewer, --out parquet:DIR writes all"
        )
        click.echo(said, err=True)
    return found[:MOST_ROWS]


def _print(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    print_table(columns, [[_text(row[name]) for name in columns] for row in rows])


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list):
        return ", ".join(map(_element, value)) or "-"
    if isinstance(value, tuple):
        return " to ".join(_text(part) for part in value)
    return str(value)


def _element(value: Any) -> str:
    return value if isinstance(value, str) else f"{value.client_id}@{value.client_host.removeprefix('/')}"
