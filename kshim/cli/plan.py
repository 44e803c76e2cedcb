"""`kshim plan`: predicts how a group fares under a deployment, for several settings side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kshim.cli.durations import duration_ms
from kshim.plan.setting import BrokerKind, ClientKind


def _time(name: str, text: str, default: str | None = None, *names: str) -> Callable[..., Any]:
    """An option that takes a duration."""
    return click.option(
        name, *names, metavar="TIME", type=duration_ms, default=default, show_default=True, help=text
    )


@click.command
@click.option(
    "--members", type=click.IntRange(1, 1000), default=3, show_default=True, help="Members at the beginning."
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 10_000),
    default=12,
    show_default=True,
    help="Partitions of the topic.",
)
@_time("--duration", "How long to watch the group, in virtual time.", "1h")
@click.option(
    "--setting",
    "settings",
    metavar="PROTOCOL[,…]",
    multiple=True,
    help="A row of the table: eager, static (short for eager,static), cooperative or consumer; then static, "
    "session=, heartbeat=, max-poll=, processing=, initial-delay=, latency=TIME, assignor=, client=, "
    "broker=NAME. Default: all four.",
)
@click.option(
    "--rolling-restart",
    metavar="EVERY[@AT]",
    multiple=True,
    help="From AT on (default: 1m), restart all members, one after the other.",
)
@_time("--down", "How long after its end a restarted member joins again.", "5s")
@click.option(
    "--kill", is_flag=True, help="A rolling restart kills members: they do not close their consumers."
)
@click.option(
    "--scale", metavar="[FROM:]TO@AT", multiple=True, help="At AT, start or close members: then there are TO."
)
@click.option(
    "--crash",
    metavar="N@AT[+BACK]",
    multiple=True,
    help="At AT, N members crash; BACK later they start again.",
)
@click.option(
    "--broker",
    type=click.Choice([each.value for each in BrokerKind]),
    default=BrokerKind.KAFKA.value,
    show_default=True,
    help="Whose coordinator to predict.",
)
@click.option(
    "--client",
    type=click.Choice([each.value for each in ClientKind]),
    default=ClientKind.JAVA.value,
    show_default=True,
    help="Whose consumers to predict.",
)
@_time("--session", "session.timeout.ms.", "45s")
@_time("--heartbeat", "heartbeat.interval.ms. Default: 3s; with the consumer protocol what the broker says.")
@_time("--max-poll", "max.poll.interval.ms, the rebalance timeout.", "5m")
@_time("--processing", "How long the program works on what a poll returns.", "0ms")
@_time("--initial-delay", "group.initial.rebalance.delay.ms. Default: 3s, and 0 with --broker kshim.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Decides what is left to chance."
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Runs, each with the next seed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Draw the share of partitions without an owner over time (SVG).",
)
def plan(**options: Any) -> None:
    """Predict how a group fares: how long partitions have no owner, how much moves, how long members pause.

    Plays restarts, scaling and crashes with kshim's coordinator and model clients on a virtual clock: an
    hour takes about a second. No server is needed, and none is asked. docs/plan.md shows what the figures
    mean, and how near they are to real clients.

    \b
    Examples:
      kshim plan --members 20 --partitions 60 --rolling-restart 10s
      kshim plan --members 4 --scale 4:10@10m --scale 10:4@40m --plot plan.svg
      kshim plan --crash 1@5m+30s --setting static --setting static,session=10s --setting consumer
    """
    from kshim.cli.planned import run_plan

    run_plan(options)
