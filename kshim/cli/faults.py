"""A fault of the user's: one line for each on standard error, and exit status 2."""

from __future__ import annotations

import sys
from typing import Final, NoReturn

import click

EXIT_USAGE: Final = 2


def fail(*problems: str, command: str = "kshim") -> NoReturn:
    """Tell the user what is wrong, a line for each problem, and exit."""
    for problem in problems:
        click.echo(f"{command}: {problem}", err=True)
    sys.exit(EXIT_USAGE)
