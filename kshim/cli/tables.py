"""Tables: drawn with lines on a terminal, else as aligned columns for other programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print `rows` under their titles."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*titles)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        click.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
