"""`kshim adopt`: copies groups' offsets from the upstream, so that the groups can go on in kshim."""

from __future__ import annotations

import re

import click

from kshim.cli.asking import Server, ask_server, of_running_server
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table

ALL = ".*"


@click.command()
@click.argument("group_id", metavar="[GROUP]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Adopt all groups that this kshim coordinates.")
@click.option("--pattern", metavar="REGEX", help="Adopt those whose whole ids match a regular expression.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Show what would be adopted, and adopt nothing.")
@of_running_server
def adopt(server: Server, group_id: str | None, is_all: bool, pattern: str | None, is_dry_run: bool) -> None:
    """Copy to kshim the offsets that GROUP, or many groups, have committed at the upstream.

    For a server with --upstream. kshim does so by itself when the first member of a group joins; this command
    does it before, or shows what would be done. Stop a group's members first. --all and --pattern leave
    offsets alone that are the same at both sides, or newer at kshim; GROUP takes all of the upstream's. The
    way back needs no command: kshim also commits the groups' offsets at the upstream.

    \b
    Examples:
      kshim adopt --all --dry-run
      kshim adopt --pattern 'billing-.*'
      kshim adopt orders
    """
    if sum((group_id is not None, is_all, pattern is not None)) != 1:
        raise click.UsageError("expected one of GROUP, --all and --pattern REGEX")
    if group_id is not None and not is_dry_run:
        rows = ask_server(server, "adopt", group_id)
        print_table(("Topic", "Partition", "Offset"), [tuple(map(str, row)) for row in rows])
        return
    wanted = re.escape(group_id) if group_id is not None else pattern or ALL
    found = ask_server(server, "adopt-matching", wanted, is_dry_run)
    if found["adopted"]:
        rows = [tuple(map(str, row)) for row in found["adopted"]]
        print_table(("Group", "Topic", "Partition", "Offset"), rows)
    else:
        print_line("nothing to adopt: kshim has what these groups have committed at the upstream")
    for name, why in found["left"]:
        print_line(f"left: {name}: {why}")
