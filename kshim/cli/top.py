"""`kshim top`: the groups of a running server, live on the terminal."""

from __future__ import annotations

import sys
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from kshim.cli.asking import OnlyKshim, Server, ask_server, of_running_server
from kshim.cli.overview import TITLES, missing, row
from kshim.cli.tables import drawn, print_table
from kshim.recorder.one_line import on_one_line

if TYPE_CHECKING:
    from rich.console import Group

    from kshim.control.overview import ListedGroups
    from kshim.control.recorder import ShownEvent, ShownEvents

EVENTS = 8
"""Most lines about the latest events."""
MOST_GROUPS = 200
RATE = "Records/s"
COLORS = {
    "Stable": "green",
    "Empty": "dim",
    **dict.fromkeys(("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"), "yellow"),
}


@click.command()
@click.option(
    "--every",
    "every_s",
    metavar="SECONDS",
    default=1.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Time between two updates.",
)
@of_running_server
def top(server: Server, every_s: float) -> None:
    """Show the groups live: lag, records per second, current rebalances, and events. Ctrl-C ends it.

    \b
    Examples:
      kshim top
      kshim top --every 0.5
    """
    known: ListedGroups = ask_server(server, "groups")
    if not sys.stdout.isatty():
        print_table(TITLES, [row(group, known["now_ms"]) for group in known["groups"]])
        for line in missing(known):
            click.echo(line, err=True)
        return
    from rich.live import Live

    events: deque[ShownEvent] = deque(maxlen=EVENTS)
    before, last = known, 0
    took_s, looked_s = 0.0, time.monotonic()
    with Live(screen=True, auto_refresh=False) as live:
        while True:
            came = _events(server, last)
            last = came["last"]
            events.extend(came["events"])
            live.update(_screen(known, _rates(known, before, took_s), events), refresh=True)
            time.sleep(every_s)
            before, known = known, ask_server(server, "groups")
            took_s, looked_s = time.monotonic() - looked_s, time.monotonic()


def _events(server: Server, last: int) -> ShownEvents:
    """The events after number `last`; none of a server that is not kshim."""
    try:
        found: ShownEvents = ask_server(server, "events", last, 0)
    except OnlyKshim:
        return {"events": (), "last": last}
    return found


def _screen(known: ListedGroups, rates: dict[str, float], events: deque[ShownEvent]) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    groups = known["groups"]
    table = Table(*TITLES[:4], RATE, *TITLES[4:], expand=True)
    for group in sorted(groups, key=lambda each: -(each["lag"] or 0))[:MOST_GROUPS]:
        cells = drawn(row(group, known["now_ms"]))
        rate = f"{rates.get(group['group_id'], 0):,.0f}"
        table.add_row(*cells[:4], rate, *cells[4:], style=COLORS.get(group["state"], ""))
    lag = sum(group["lag"] or 0 for group in groups)
    members = sum(group["members"] for group in groups)
    title = Text(f"{len(groups)} groups, {members} members, {lag:,} records behind", style="bold")
    shown = (on_one_line(f"{_clock(event['at_ms'])}  {event['text']}") for event in events)
    lines = [Text(each, no_wrap=True) for each in shown]
    more = len(groups) - MOST_GROUPS
    rest = [Text(f"and {more:,} more groups, which are less behind")] if more > 0 else []
    warnings = [Text(on_one_line(each), style="red") for each in missing(known)]
    return Group(title, *warnings, table, *rest, *lines)


def _rates(known: ListedGroups, before: ListedGroups, took_s: float) -> dict[str, float]:
    """Records per second that each group has committed since `before`."""
    earlier = {group["group_id"]: group["committed"] for group in before["groups"]}
    if took_s <= 0:
        return {}
    return {
        group["group_id"]: max(group["committed"] - earlier[group["group_id"]], 0) / took_s
        for group in known["groups"]
        if group["group_id"] in earlier
    }


def _clock(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}Z"
