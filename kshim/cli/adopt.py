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
    """Copy to kshim the offsets that GROUP has committed at the upstream.

    For a server with --upstream. Stop the group's members, adopt the group, and start the members with
    kshim's address. The way back needs no command: kshim also commits the group's offsets at the upstream.
    """
    rows = ask_server(path, "adopt", group_id)
    print_table(("Topic", "Partition", "Offset"), [tuple(map(str, row)) for row in rows])
