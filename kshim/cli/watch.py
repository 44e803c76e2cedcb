"""`kshim watch`: shows the events of a running server as they happen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from kshim.cli.asking import Server, ask_server, of_running_server
from kshim.cli.durations import time_of_day
from kshim.cli.lines import print_line

if TYPE_CHECKING:
    from kshim.control.recorder import ShownEvents

WAIT_MS = 30_000


@click.command()
@click.option("--group", metavar="GROUP", help="Show only events of this group.")
@click.option("--since-start", is_flag=True, help="Begin with the earliest events that the server has kept.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as one line of JSON.")
@of_running_server
def watch(server: Server, group: str | None, since_start: bool, as_json: bool) -> None:
    """Show rebalances and other events of a running server as they happen. Ctrl-C ends it.

    \b
    Examples:
      kshim watch
      kshim watch --group readers
      kshim watch --json | jq .text
    """
    last = 0 if since_start else ask_server(server, "events", -1, 0)["last"]
    while True:
        found: ShownEvents = ask_server(server, "events", last, WAIT_MS)
        last = found["last"]
        for event in found["events"]:
            if group is None or event["group"] == group:
                if as_json:
                    click.echo(json.dumps(event))
                else:
                    print_line(f"{time_of_day(event['at_ms'])}  {event['text']}")
