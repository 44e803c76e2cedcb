"""`kshim torture`: puts a program that consumes through all that a group goes through, and judges it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kshim.cli.durations import duration_ms
from kshim.cli.tables import print_table
from kshim.torture.faults import FAULTS
from kshim.torture.promises import Promise


def _list_faults(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        print_table(
            ("Fault", "What is done", "The bug it finds"),
            [(f.name, f.does, f.finds) for f in FAULTS.values()],
        )
        context.exit()


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, metavar="-- COMMAND…")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_faults, help="List all faults."
)
@click.option(
    "--promise",
    type=click.Choice([each.value for each in Promise]),
    default=Promise.AT_LEAST_ONCE.value,
    show_default=True,
    help="What the program promises.",
)
@click.option("--in-order", is_flag=True, help="It also promises to process each key's records in order.")
@click.option("--report", is_flag=True, help="It prints 'processed TOPIC PARTITION OFFSET' for each record.")
@click.option(
    "--output",
    metavar="TOPIC",
    help="It writes a record to this topic for each one that it processes, with the header kshim-number, or "
    "with the number in JSON; see --pointer.",
)
@click.option(
    "--pointer", metavar="POINTER", default="/number", show_default=True, help="JSON pointer to the number."
)
@click.option(
    "--value",
    metavar="TEMPLATE",
    default='{"number": $number, "key": "$key"}',
    show_default=True,
    help="The values of the records that are produced for it.",
)
@click.option(
    "--no-group", is_flag=True, help="It joins no group, and keeps its offsets elsewhere, as Spark does."
)
@click.option("--seed", type=click.IntRange(0), help="Repeat the schedule of this seed. Default: a new one.")
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Play so many seeds; stop at a failure.",
)
@click.option(
    "--instances", type=click.IntRange(1, 20), default=3, show_default=True, help="Instances of the program."
)
@click.option(
    "--partitions", type=click.IntRange(1, 100), default=4, show_default=True, help="Partitions of the topic."
)
@click.option(
    "--brokers", type=click.IntRange(1, 9), default=3, show_default=True, help="Brokers of the server."
)
@click.option(
    "--rate", type=click.IntRange(1, 2000), default=60, show_default=True, help="Records per second."
)
@click.option(
    "--for",
    "lasts",
    metavar="TIME",
    type=duration_ms,
    default="10s",
    show_default=True,
    help="How long to disturb.",
)
@click.option(
    "--start",
    metavar="TIME",
    type=duration_ms,
    default="20s",
    show_default=True,
    help="The time for all instances to start and join.",
)
@click.option(
    "--settle",
    metavar="TIME",
    type=duration_ms,
    default="15s",
    show_default=True,
    help="How long it may get no further after that, until everything is drained.",
)
@click.option(
    "--faults", metavar="NAME,…", help="Only these faults; with a '-' before a name: all but these."
)
@click.option(
    "--topic",
    metavar="NAME",
    default="input",
    show_default=True,
    help="The topic to process, in KSHIM_TOPIC.",
)
@click.option(
    "--group", metavar="ID", default="torture", show_default=True, help="The group, in KSHIM_GROUP."
)
@click.option("--set", "properties", metavar="KEY=VALUE", multiple=True, help="A property of the server.")
@click.option(
    "--schedule",
    "schedule_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Play this schedule.",
)
@click.option(
    "--save-schedule",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Save the schedule that failed, or the last one.",
)
@click.option(
    "--shrink", is_flag=True, help="If the promise is broken, find a smallest schedule that breaks it."
)
@click.option(
    "--page",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Save the story as a page (HTML).",
)
@click.option(
    "--logs",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep what the instances print, and what the server noted.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the verdict and its stories.")
def torture(command: Sequence[str], **options: Any) -> None:
    """Put a program that consumes through all that a group goes through, and judge its promise.

    Starts a server, produces records, and starts instances of COMMAND, which find their work in
    KSHIM_BOOTSTRAP, KSHIM_GROUP, KSHIM_TOPIC and KSHIM_OUTPUT. Instances are killed, frozen and stopped,
    leaders and coordinators move, requests fail: a schedule drawn from --seed. Then it is quiet, and
    everything has to be drained. Without --report and --output, the program is judged by the offsets that it
    commits. The exit status is 0 if the promise holds, and 1 if it is broken. docs/torture.md shows more.

    \b
    Examples:
      kshim torture --report -- python worker.py
      kshim torture --promise exactly-once --output results --seed 7 --page story.html -- java -jar worker.jar
      kshim torture --list
    """
    from kshim.cli.tortured import run_torture

    run_torture(list(command), options)
