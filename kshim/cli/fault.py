"""`kshim fault`: makes chosen requests to a running server fail, come late, or lose their connection."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kshim.cli.asking import Server, ask_server, of_running_server
from kshim.cli.durations import duration_ms
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table

if TYPE_CHECKING:
    from kshim.control.faults import ListedFault


@click.group()
def fault() -> None:
    """Make chosen requests to a running server fail, wait, or lose their connection.

    A fault lasts until it is removed, has struck often enough (--times), its time is over (--for), or the
    server ends. docs/faults.md shows how clients react.

    \b
    Examples:
      kshim fault add --api Heartbeat --error NOT_COORDINATOR --group g --times 2
      kshim fault add --api Fetch --delay-ms 500 --client-id slow --for 30s --probability 0.2 --seed 7
      kshim fault add --api OffsetCommit --close
      kshim fault list
      kshim fault remove 1
      kshim fault remove --all
    """


@fault.command()
@click.option(
    "--api",
    metavar="NAME",
    help="Only requests of this API; `kshim apis` lists the names. Default: all APIs.",
)
@click.option("--error", metavar="NAME", help="Do not perform the request. Answer with this Kafka error.")
@click.option("--delay-ms", metavar="MS", type=int, help="Perform the request, and delay the answer by MS.")
@click.option("--drop", is_flag=True, help="Perform the request. Send no more answers on its connection.")
@click.option(
    "--close",
    is_flag=False,
    flag_value="before",
    metavar="[before|after]",
    help="Close the connection before or after the request is performed. Default: before.",
)
@click.option(
    "--stall-ms",
    metavar="MS",
    type=int,
    help="Read and send nothing on the connection for MS. Then perform the request.",
)
@click.option(
    "--bytes-per-s",
    metavar="N",
    type=int,
    help="Read the request and send its answer at N bytes per second at most.",
)
@click.option("--client-id", metavar="ID", help="Only requests of this client.")
@click.option("--not-client-id", metavar="ID", help="Only requests of all other clients.")
@click.option("--group", metavar="ID", help="Only requests that name this group.")
@click.option("--topic", metavar="NAME", help="Only requests that name this topic.")
@click.option("--member", metavar="ID", help="Only requests that name this member.")
@click.option("--nth", metavar="N", type=int, help="Strike from the N-th matching request on. Default: 1.")
@click.option("--times", metavar="N", type=int, help="Strike at most N requests. Default: all.")
@click.option("--once", is_flag=True, help="Same as --times 1.")
@click.option(
    "--probability",
    metavar="P",
    type=float,
    help="Strike each request with probability P: 0.2 strikes one in five on average.",
)
@click.option(
    "--seed",
    metavar="N",
    type=int,
    help="Seed of --probability. The same seed strikes the same requests again.",
)
@click.option(
    "--for",
    "for_ms",
    metavar="TIME",
    type=duration_ms,
    help="End the fault after TIME: 500ms, 30s, 5m, 1h.",
)
@of_running_server
def add(server: Server, **given: object) -> None:
    """Add a fault: one of --error, --delay-ms, --drop, --close, --stall-ms, --bytes-per-s."""
    added: ListedFault = ask_server(server, "add-fault", given)
    print_line(f"fault {added['number']}: {added['does']} for {_text(added)}")


@fault.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@of_running_server
def list_faults(server: Server, as_json: bool) -> None:
    """List the faults, and how often each has struck.

    Matched counts the requests that match the fault. Struck counts the requests that it struck; --nth and
    --probability may spare a matching request.
    """
    found: Sequence[ListedFault] = ask_server(server, "list-faults")
    if as_json:
        click.echo(json.dumps(found))
    elif not found:
        print_line("no faults")
    else:
        rows = [
            (
                str(each["number"]),
                each["does"],
                each["to"],
                each["when"] or "always",
                "in force" if each["is_in_force"] else "over",
                str(each["matched"]),
                str(each["struck"]),
            )
            for each in found
        ]
        print_table(("Fault", "Does", "To", "When", "State", "Matched", "Struck"), rows)


@fault.command()
@click.argument("number", type=int, required=False)
@click.option("--all", "all_of_them", is_flag=True, help="Remove all faults.")
@of_running_server
def remove(server: Server, number: int | None, all_of_them: bool) -> None:
    """Remove fault NUMBER, or all."""
    if (number is None) is not all_of_them:
        raise click.UsageError("name the NUMBER of a fault, as `kshim fault list` shows it, or say --all")
    if all_of_them:
        print_line(f"removed: {ask_server(server, 'remove-faults')}")
        return
    assert number is not None
    removed: ListedFault = ask_server(server, "remove-fault", number)
    print_line(
        f"removed fault {number}: {removed['does']} for {_text(removed)}; it struck {removed['struck']} times"
    )


def _text(described: ListedFault) -> str:
    when = described["when"]
    return f"{described['to']}{when and f' ({when})'}"
