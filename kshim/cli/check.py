"""`kshim check`: shows progress, prints a line for each fault, and a table of the checked topics."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from kshim.check.apart import walk_apart
from kshim.check.partition import Checked
from kshim.check.stored import Damaged, Stored
from kshim.check.walk import Found
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table
from kshim.storage.interfaces import StorageError

EXIT_DAMAGED = 1


@click.command()
@click.argument("data_dir", metavar="DIR", type=Path)
def check(data_dir: Path) -> None:
    """Check a data directory for damage.

    Checks every batch's CRC and offsets, the state of producers and transactions, the metadata, and whether
    the coordinators could load their records. Changes nothing. Prints one line for each fault, with its
    place. The exit status is 0 if nothing is damaged, 1 if something is damaged, and 2 if the directory
    cannot be read, for example because a server has it open.

    \b
    Example:
      kshim check ./kshim-data
    """
    try:
        found = walk_apart(data_dir, _progress)
    except Damaged as damaged:
        print_line(str(damaged))
        sys.exit(EXIT_DAMAGED)
    except StorageError as error:
        raise click.ClickException(str(error)) from None
    for fault in found.faults:
        print_line(str(fault))
    print_table(("Topic", "Partitions", "Records", "Batches", "Bytes", "Faults"), _rows(found))
    faults = len(found.faults)
    print_line("all is well" if not faults else f"{faults} fault{'s' * (faults > 1)}")
    sys.exit(EXIT_DAMAGED if faults else 0)


@contextmanager
def _progress(stored: Stored) -> Iterator[Callable[[int], object]]:
    """A progress bar on a terminal. Yields the function to call with the size of each checked chunk."""
    if not sys.stderr.isatty():
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), "chunks", TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("checking", total=stored.entries("log"))
        yield lambda size: progress.advance(task)


def _rows(found: Found) -> list[Sequence[str]]:
    topics: dict[str, list[Checked]] = {}
    for partition in found.partitions:
        topics.setdefault(partition.topic, []).append(partition)
    return [
        (
            name,
            str(len(partitions)),
            *(
                f"{sum(getattr(partition, what) for partition in partitions):,}"
                for what in ("records", "batches", "bytes")
            ),
            str(sum(len(partition.faults) for partition in partitions)),
        )
        for name, partitions in sorted(topics.items())
    ]
