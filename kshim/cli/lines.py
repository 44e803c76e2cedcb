"""Prints lines on standard output. A server's answers contain names that clients chose, so every line is made
safe first.
"""

from __future__ import annotations

import click

from kshim.recorder.one_line import on_one_line


def print_line(text: str = "") -> None:
    """Print one line, with control characters escaped, as they could steer the terminal."""
    click.echo(on_one_line(text))
