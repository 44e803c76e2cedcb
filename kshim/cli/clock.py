"""`kshim clock`: shows a running server's time, moves it ahead, holds it, and makes it go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from kshim.cli.asking import Server, ask_server, of_running_server
from kshim.cli.durations import duration_ms

if TYPE_CHECKING:
    from kshim.control.time import Now


@click.group()
def clock() -> None:
    """Show, move or stop the time of a running server.

    It counts for sessions, rebalances, transactions, offsets and records. Timeouts of connections and of
    clients use the real time. After a restart the server uses the real time for everything.

    \b
    Examples:
      kshim clock now
      kshim clock advance 6m
      kshim clock advance 8d --silent
      kshim clock hold
      kshim clock resume
    """


@clock.command()
@of_running_server
def now(server: Server) -> None:
    """Show the server's time."""
    _print(ask_server(server, "clock-now"))


@clock.command()
@click.argument("duration", type=duration_ms)
@click.option("--silent", is_flag=True, help="End the sessions of connected members as well.")
@of_running_server
def advance(server: Server, duration: int, silent: bool) -> None:
    """Move time ahead by DURATION (90s, 5m, 1h30m, 8d), and wait until everything that is due is done.

    Members with connected clients stay in their groups, as if they had sent heartbeats meanwhile. With
    --silent they do not.
    """
    _print(ask_server(server, "clock-advance", duration, silent))


@clock.command()
@of_running_server
def hold(server: Server) -> None:
    """Stop the time: no session and no transaction times out. `kshim clock advance` still moves it."""
    _print(ask_server(server, "clock-hold"))


@clock.command()
@of_running_server
def resume(server: Server) -> None:
    """Start the time again, from where it stopped."""
    _print(ask_server(server, "clock-resume"))


def _print(now: Now) -> None:
    at = datetime.fromtimestamp(now["now_ms"] / 1000, UTC)
    ahead = timedelta(milliseconds=abs(now["ahead_ms"]))
    line = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    if ahead:
        line += f", {ahead} {'ahead of' if now['ahead_ms'] > 0 else 'behind'} the machine's clock"
    click.echo(line + (", held" if now["is_held"] else ""))
