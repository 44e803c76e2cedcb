"""Lines on standard output. What a server answers holds names that its clients chose, so they pass here."""

from __future__ import annotations

import click

from kshim.recorder.one_line import on_one_line


def print_line(text: str = "") -> None:
    """Print one line, without what could steer the terminal."""
    click.echo(on_one_line(text))
