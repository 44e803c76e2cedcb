"""`kshim adopt`: copies a group's offsets from the upstream, so that the group can go on in kshim."""

from __future__ import annotations

from pathlib import Path

import click

from kshim.cli.asking import ask_server, of_running_server
from kshim.cli.tables import print_table


@click.command()
@click.argument("group_id", metavar="GROUP")
@of_running_server
def adopt(path: Path, group_id: str) -> None:
    """Commit here what GROUP has committed at the upstream.

    For a server with --upstream. Stop the group's members first, adopt it, and start them with the address of
    kshim. Nothing is needed for the way back: the upstream has the offsets that are committed here.
    """
    rows = ask_server(path, "adopt", group_id)
    print_table(("Topic", "Partition", "Offset"), [tuple(map(str, row)) for row in rows])
