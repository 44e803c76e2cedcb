"""`kshim pipeline`: queries the coordinator's log, and writes the rows to the terminal, Parquet or a table.

PySpark is imported when a command runs, so that the help works without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from kshim.cli.faults import fail
from kshim.cli.pipeline_options import Options, Out
from kshim.recorder.one_line import on_one_line

EXIT_FAILED: Final = 1
_NAME: Final = "kshim pipeline"

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def _out(ctx: click.Context, param: click.Parameter, value: str) -> Out:
    kind, _, name = value.partition(":")
    if (kind, bool(name)) not in {("console", False), ("parquet", True), ("table", True)}:
        raise click.BadParameter(f"{value}: expected console, parquet:DIR or table:NAME")
    return Out(kind, name)


_BOOTSTRAP = click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    default="127.0.0.1:9092",
    show_default=True,
    help="Address of the Kafka cluster.",
)
_LOG = click.option(
    "--log",
    metavar="TOPIC",
    default="",
    show_default="__kshim_groups if the cluster has it, else __consumer_offsets",
    help="Topic with the coordinator's log.",
)
_CONF = click.option(
    "--conf",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of Spark, such as spark.master=yarn; may be given several times.",
)
_VERBOSE = click.option("-v", "--verbose", is_flag=True, help="Show what Spark prints, on standard error.")
_OUT = click.option(
    "--out",
    callback=_out,
    default="console",
    show_default=True,
    metavar="console|parquet:DIR|table:NAME",
    help="Where to write the rows.",
)
_STREAM = click.option("--stream", is_flag=True, help="Follow the log, and report changes until Ctrl-C.")
_EVERY = click.option(
    "--every",
    "every_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="With --stream: time between two reports.",
)
_STATE = click.option(
    "--state",
    metavar="DIR",
    show_default="a temporary directory",
    help="With --stream: directory for Spark's state; on a cluster, in storage that all machines share.",
)
_GROUPS = click.option(
    "--group",
    "groups",
    metavar="GROUP",
    multiple=True,
    show_default="all groups",
    help="Show only this group; may be given several times.",
)
_ASKING = (_BOOTSTRAP, _LOG, _CONF, _VERBOSE)
_STREAMING = (_BOOTSTRAP, _LOG, _GROUPS, _OUT, _STREAM, _EVERY, _STATE, _CONF, _VERBOSE)
_STUCK_FOR = click.option(
    "--for",
    "for_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="How long a group with records to read may commit no progress.",
)
_UNREVOKED_FOR = click.option(
    "--for",
    "for_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="How long a member may take to give up partitions.",
)
_WITHIN = click.option(
    "--within", metavar="TIME", default="10 minutes", show_default=True, help="Length of the time window."
)
_AT_LEAST = click.option(
    "--at-least",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Number of rebalances in a window.",
)


def _with(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.group()
def pipeline() -> None:
    """Query the coordinator's log with Spark.

    It works with kshim and with any Kafka cluster.

    \b
    Examples:
      kshim pipeline lag --bootstrap 127.0.0.1:9092
      kshim pipeline rebalances --group orders --stream
      kshim pipeline flapping --within "10 minutes" --at-least 3
      kshim pipeline report --out groups
      kshim pipeline snapshot offsets.parquet
    """


@pipeline.command()
@_with(*_STREAMING)
def lag(**options: object) -> None:
    """Show how far each group is behind, in records and in seconds."""
    _run("lag", options)


@pipeline.command()
@_with(_STUCK_FOR, *_STREAMING)
def stuck(for_s: float, **options: object) -> None:
    """Show groups that have records to read and commit no progress."""
    _run("stuck", options, for_s=for_s)


@pipeline.command()
@_with(*_STREAMING)
def rebalances(**options: object) -> None:
    """Show each generation of each group.

    Shows the members that joined and left, the leader, and how long the generation lasted. For groups of
    kshim it also shows the cause of the rebalance and how long the rebalance took.
    """
    _run("rebalances", options)


@pipeline.command()
@_with(_WITHIN, _AT_LEAST, *_STREAMING)
def flapping(within: str, at_least: int, **options: object) -> None:
    """Show groups that rebalance too often.

    Also shows the client that joined or left most often.
    """
    _run("flapping", options, within=within, at_least=at_least)


@pipeline.command()
@_with(_UNREVOKED_FOR, *_STREAMING)
def unrevoked(for_s: float, **options: object) -> None:
    """Show members of consumer groups that do not give up partitions.

    The partitions' next owners wait for them. Only groups with group.protocol=consumer have such members.
    """
    _run("unrevoked", options, for_s=for_s)


@pipeline.command()
@click.option(
    "--out",
    "directory",
    metavar="DIR",
    type=Path,
    required=True,
    help="Directory to write the page to, as index.html.",
)
@click.option(
    "--last",
    "last_s",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    show_default="the whole log",
    help="Use only the last SECONDS of the log.",
)
@_with(_STUCK_FOR, _WITHIN, _AT_LEAST, _GROUPS, *_ASKING)
def report(
    directory: Path, last_s: float | None, for_s: float, within: str, at_least: int, **options: object
) -> None:
    """Write an HTML page about all groups.

    It shows lag, commits and rebalances over time, and the groups that are stuck or flapping. The page is one
    file that needs nothing else.

    \b
    Example:
      kshim pipeline report --out groups --last 3600
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"--out {directory}: cannot write there: {error.strerror}", command=_NAME)
    asked = {"stuck_for_s": for_s, "within": within, "at_least": at_least}
    _run("report", options, directory=directory, last_s=last_s, asked=asked)


@pipeline.command()
@click.argument("path")
@_with(_GROUPS, *_ASKING)
def snapshot(path: str, **options: object) -> None:
    """Save the committed offsets of every group as Parquet at PATH."""
    _run("snapshot", options, path=path)


@pipeline.command()
@click.argument("path")
@click.option(
    "--execute",
    is_flag=True,
    help="Commit the offsets. Without it, only show which offsets would be committed.",
)
@_with(_OUT, *_ASKING)
def restore(path: str, execute: bool, **options: object) -> None:
    """Commit the offsets saved at PATH. Only groups without members are restored."""
    _run("restore", options, path=path, dry_run=not execute)


def _run(question: str, options: dict[str, Any], **arguments: object) -> None:
    """Answer a question, or print one line that says why that is impossible.

    Exits with status 2 if the user must correct something, with 1 if Spark fails for another reason.
    """
    from kshim.spark.errors import PipelineError, SparkFailed, SparkUnavailable

    try:
        from kshim.cli import pipeline_questions as questions
    except ModuleNotFoundError as error:
        fail(f"{error.name} is not installed: pip install 'kshim[spark]'", command=_NAME)
    try:
        questions.answer(question, Options(**options), arguments)
    except (PipelineError, SparkUnavailable) as error:
        fail(str(error), command=_NAME)
    except SparkFailed as error:
        print(f"{_NAME}: {on_one_line(str(error))}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
