"""`kshim demo`: checks what is installed, runs the demo, and sets the exit status."""

import importlib.metadata
import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from kshim.cli.faults import EXIT_USAGE

FAILED = 1
OLDEST_CLIENT = (3, 0, 12)
"""Consumers of kafka-python 3.0.0 to 3.0.6 leave partitions unread, also with Apache Kafka."""


def lacking(spark: bool) -> str | None:
    """Return one line that names a missing package or Java, and how to install it; None if nothing is
    missing.
    """
    try:
        version = importlib.metadata.version("kafka-python")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    if release(version) < OLDEST_CLIENT:
        oldest = ".".join(map(str, OLDEST_CLIENT))
        found = f", not {version}" if version else ""
        return f"kshim demo needs kafka-python {oldest} or later{found}: pip install 'kafka-python>={oldest}'"
    if spark and find_spec("pyspark") is None:
        return "kshim demo --spark needs PySpark: pip install pyspark"
    if spark and not java():
        return "kshim demo --spark needs Java 17 or later: install it, or set JAVA_HOME"
    return None


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (3, 0, 12) for 3.0.12.dev1."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def java() -> bool:
    """True if PySpark will find Java."""
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None


@click.command()
@click.option("--spark", is_flag=True, help="Also count the records with PySpark at the end (needs Java).")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3600),
    default=2.0,
    show_default=True,
    help="How long the group works without disturbance after each join, each crash and the restart.",
)
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Save a picture.", hidden=True)
def demo(spark: bool, seconds: float, svg: Path | None) -> None:
    """Watch a consumer group lose a member and its server, and lose no record.

    Starts a server on a free port with a temporary data directory, and real kafka-python producers and
    consumers, each in its own process. Three members join, one is killed, the server is killed and started
    again. The exit status is 0 if every acknowledged record was received and every committed offset kept,
    else 1.
    """
    if missing := lacking(spark):
        click.echo(missing, err=True)
        sys.exit(EXIT_USAGE)
    from kshim.demo.run import demonstrate

    try:
        sys.exit(demonstrate(spark=spark, steady_s=seconds, svg=svg))
    except OSError as error:
        click.echo(f"kshim demo: {error}", err=True)
        sys.exit(FAILED)
