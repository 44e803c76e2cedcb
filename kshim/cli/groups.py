"""`kshim groups`: lists all groups of a running server, with their lag, and how restless they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from kshim.cli.asking import Server, ask_server, of_running_server
from kshim.cli.overview import TITLES, missing, row
from kshim.cli.tables import print_table

if TYPE_CHECKING:
    from kshim.control.overview import ListedGroups


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@of_running_server
def groups(server: Server, as_json: bool) -> None:
    """List the groups: state, members, lag, rebalances, and members that are slow or keep dying.

    \b
    Examples:
      kshim groups
      kshim groups --json | jq '.groups[].lag'
    """
    known: ListedGroups = ask_server(server, "groups")
    if as_json:
        click.echo(json.dumps(known))
        return
    if known["groups"]:
        print_table(TITLES, [row(group, known["now_ms"]) for group in known["groups"]])
    else:
        click.echo("there are no groups")
    for line in missing(known):
        click.echo(line, err=True)
