"""`kshim pipeline`: what the coordinator's log says, as tables on the terminal or as files of Spark.

PySpark is imported when a command runs, so that the help needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kshim.cli.faults import fail
from kshim.cli.pipeline_options import Options, Out

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
    help="The cluster to ask.",
)
_CONF = click.option(
    "--conf",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of Spark, as spark.master=yarn; may come several times.",
)
_OUT = click.option(
    "--out",
    callback=_out,
    default="console",
    show_default=True,
    metavar="console|parquet:DIR|table:NAME",
    help="Where the rows go.",
)
_STREAM = click.option("--stream", is_flag=True, help="Go on, with what changes, until Ctrl-C.")
_EVERY = click.option(
    "--every",
    "every_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="With --stream: how often to tell.",
)
_STATE = click.option(
    "--state",
    metavar="DIR",
    show_default="a temporary one",
    help="With --stream: where Spark keeps what it knows; on a cluster, what all machines share.",
)
_STREAMING = (_BOOTSTRAP, _OUT, _STREAM, _EVERY, _STATE, _CONF)


def _with(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.group()
def pipeline() -> None:
    """Ask the coordinator's log with Spark: of kshim, or of any Kafka cluster.

    \b
    Examples:
      kshim pipeline lag --bootstrap 127.0.0.1:9092
      kshim pipeline rebalances --stream
      kshim pipeline flapping --within "10 minutes" --at-least 3
      kshim pipeline snapshot offsets.parquet
    """


@pipeline.command()
@_with(*_STREAMING)
def lag(**options: Any) -> None:
    """How far each group is behind, in records and in seconds."""
    _run("lag", options)


@pipeline.command()
@click.option(
    "--for",
    "for_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="How long a group may stay where it is while there is more to read.",
)
@_with(*_STREAMING)
def stuck(for_s: float, **options: Any) -> None:
    """Groups that do not move though there is more to read."""
    _run("stuck", options, for_s=for_s)


@pipeline.command()
@_with(*_STREAMING)
def rebalances(**options: Any) -> None:
    """One row for each generation: who joined, who left, who leads, and how long it lasted."""
    _run("rebalances", options)


@pipeline.command()
@click.option("--within", metavar="TIME", default="10 minutes", show_default=True, help="The window of time.")
@click.option(
    "--at-least", type=click.IntRange(min=1), default=3, show_default=True, help="Rebalances in a window."
)
@_with(*_STREAMING)
def flapping(within: str, at_least: int, **options: Any) -> None:
    """Groups that rebalance too often, and the client that makes them."""
    _run("flapping", options, within=within, at_least=at_least)


@pipeline.command()
@click.argument("path")
@_with(_BOOTSTRAP, _CONF)
def snapshot(path: str, **options: Any) -> None:
    """Keep what every group has committed, as Parquet at PATH."""
    _run("snapshot", options, path=path)


@pipeline.command()
@click.argument("path")
@click.option("--execute", is_flag=True, help="Commit them; without it, only what would be done is shown.")
@_with(_BOOTSTRAP, _OUT, _CONF)
def restore(path: str, execute: bool, **options: Any) -> None:
    """Give the offsets kept at PATH back to their groups, which must have no members."""
    _run("restore", options, path=path, dry_run=not execute)


def _run(question: str, options: dict[str, Any], **arguments: Any) -> None:
    """Answer a question, or say in one line why not, with exit status 2."""
    from kshim.spark.connector import SparkUnavailable
    from kshim.spark.errors import PipelineError

    try:
        from kshim.cli import pipeline_questions as questions
    except ModuleNotFoundError as error:
        fail(f"{error.name} is not installed: pip install 'kshim[spark]'", command="kshim pipeline")
    try:
        questions.answer(question, Options(**options), arguments)
    except (PipelineError, SparkUnavailable) as error:
        fail(str(error), command="kshim pipeline")
