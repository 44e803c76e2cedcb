"""Prints tables: with lines on a terminal, as aligned columns for other programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kshim.recorder.one_line import on_one_line

if TYPE_CHECKING:
    from rich.text import Text

MOST_CHARACTERS = 250
"""Most characters of one cell. A topic's name fits in; --json shows all of a longer text."""


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print `rows` under their titles."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*titles)
        for row in rows:
            table.add_row(*drawn(row))
        Console().print(table)
        return
    written = [[on_one_line(cell, MOST_CHARACTERS) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *written, strict=True)]
    for each in (titles, *written):
        click.echo("  ".join(f"{cell:{width}}" for cell, width in zip(each, widths, strict=True)).rstrip())


def drawn(row: Sequence[str]) -> list[Text]:
    """The cells of a row for rich, which would read "[bold]" in a str as markup."""
    from rich.text import Text

    return [Text(on_one_line(cell, MOST_CHARACTERS)) for cell in row]
