"""`kshim why`: shows why a group of a running server has rebalanced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

import click

from kshim.cli.asking import Server, ask_server, of_running_server
from kshim.cli.durations import time_of_day
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table
from kshim.cli.timeline import timeline
from kshim.coordination.groups.rebalance_record import Who
from kshim.recorder.naming import short_names
from kshim.recorder.shown import MOST_INCIDENTS
from kshim.recorder.story import NOTICEABLE_MS, listed, partitions, seconds

if TYPE_CHECKING:
    from kshim.control.recorder import Reasons
    from kshim.coordination.groups.waiting import Revoking, WaitsFor
    from kshim.recorder.shown import ShownMember, ShownRebalance


Waits = Literal["to_join", "to_join_first", "to_sync", "to_revoke", "to_get", "to_hear"]
MOST_ROWS = 10
WAITS: Mapping[Waits, str] = {
    "to_join": "It waits for these members to join",
    "to_join_first": "It waits for those to join that were given these ids",
    "to_sync": "It waits for these members to ask for their assignment",
    "to_revoke": "It waits for these members to give up partitions",
    "to_get": "These members wait for partitions that others have not given up",
    "to_hear": "These members have not heard of the new assignment, as they have sent no heartbeat since",
}
UNLIMITED: frozenset[Waits] = frozenset(("to_get", "to_hear"))
"""Members for which no time limit is known."""


@click.command()
@click.argument("group")
@click.argument("generation", type=int, required=False)
@click.option("--all", "show_all", is_flag=True, help="Show all rebalances that the server has kept.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@of_running_server
def why(server: Server, group: str, generation: int | None, show_all: bool, as_json: bool) -> None:
    """Show why GROUP has rebalanced, and for which members it waits now.

    Shows the group's last rebalance, or the one that led to GENERATION. The server keeps the last 100
    rebalances of each group until it ends.

    \b
    Examples:
      kshim why readers
      kshim why readers 7
      kshim why readers --json
    """
    known: Reasons = ask_server(server, "why", group)
    elsewhere = known.get("elsewhere", "")
    if known["now"] is None and not known["rebalances"]:
        raise click.ClickException(elsewhere or f"no group {group}")
    chosen = _chosen(known["rebalances"], group, generation, show_all)
    if as_json:
        some = known["rebalances"] if generation is None else chosen
        click.echo(json.dumps({**known, "rebalances": some}))
        return
    for line in _now(group, known["now"], known["now_ms"]):
        print_line(line)
    if elsewhere:
        print_line(elsewhere)
    if coordinated_by := known.get("coordinated_by"):
        print_line(f"It is coordinated by the kshim at {coordinated_by}.")
    if generation is None and len(known["rebalances"]) > 1:
        print_line()
        _print_rows(known["rebalances"] if show_all else known["rebalances"][-MOST_ROWS:])
    for rebalance in chosen:
        _print(rebalance)
    if known["incidents"] and generation is None:
        print_line()
        print_line("What else has happened to it")
        for incident in known["incidents"][-MOST_INCIDENTS:]:
            print_line(f"  {time_of_day(incident['at_ms'])}  {incident['text']}")


def _chosen(
    rebalances: Sequence[ShownRebalance], group: str, generation: int | None, show_all: bool
) -> Sequence[ShownRebalance]:
    if generation is None:
        return rebalances if show_all else rebalances[-1:]
    found = [each for each in rebalances if each["generation"] == generation]
    if not found:
        kept = [each["generation"] for each in rebalances]
        has = f"the server has kept {kept[0]} to {kept[-1]}" if kept else "the server has kept none"
        raise click.ClickException(f"group {group}: no rebalance to generation {generation}; {has}")
    return found


def _now(group: str, now: WaitsFor | None, now_ms: int) -> list[str]:
    if now is None:
        return [f"Group {group} does not exist any more."]
    count = len(now["members"])
    members = "no members" if not count else "1 member" if count == 1 else f"{count} members"
    assigned = now.get("assignment_epoch", now["generation"])
    unit = "epoch" if "assignment_epoch" in now else "generation"
    lines = [f"Group {group} is {now['state']} in {unit} {now['generation']}, with {members}."]
    if count and assigned != now["generation"]:
        lines.append(f"Its assignment is not computed yet; the last one is of epoch {assigned}.")
    if now["because"] and now["began_ms"] is not None:
        lines.append(f"It rebalances for {seconds(now_ms - now['began_ms'])} now, because {now['because']}.")
    names = _names(now)
    revoking = now.get("revoking", ())
    for each in revoking[:MOST_ROWS]:
        lines.append(_awaits(each, names, now_ms))
    left = "" if now["until_ms"] is None else f", {seconds(max(now['until_ms'] - now_ms, 0))} more at most"
    for key, what in WAITS.items():
        known = {each["member_id"] for each in revoking[:MOST_ROWS]} if key == "to_revoke" else ()
        awaited = [names.get(each, each) for each in now.get(key, ()) if each not in known]
        if awaited:
            lines.append(f"{what}{'' if key in UNLIMITED else left}: {listed(awaited, most=20)}.")
    return lines


def _names(now: WaitsFor) -> Mapping[str, str]:
    """Short names of the group's members, by member id."""
    shown = cast("Sequence[ShownMember]", now["members"])
    return short_names(
        Who(each["member_id"], each["client_id"], each["host"], each["instance_id"]) for each in shown
    )


def _awaits(it: Revoking, names: Mapping[str, str], now_ms: int) -> str:
    """Say how long a member has been asked to give up partitions."""
    named = [(topic, index) for topic, some in it["partitions"].items() for index in some]
    what = partitions(named) if named else "partitions of a deleted topic"
    return (
        f"It waits for {names.get(it['member_id'], it['member_id'])} to give up {what}: "
        f"asked {seconds(now_ms - it['since_ms'])} ago, it has not acknowledged that, "
        f"and is removed in {seconds(max(it['until_ms'] - now_ms, 0))}."
    )


def _print_rows(rebalances: Sequence[ShownRebalance]) -> None:
    rows = [
        (
            str(each["generation"]),
            time_of_day(each["began_ms"]),
            seconds(each["ended_ms"] - each["began_ms"]) + ("" if each["completed_ms"] else " (gave way)"),
            each["cause"],
            listed((_name(each, member_id) for member_id in each["members_at_cause"]), most=2),
            _slowest(each),
            str(len([moved for moved in each["moved"] if moved["from"]])),
        )
        for each in rebalances
    ]
    unit = "Epoch" if all(each.get("is_of_consumers") for each in rebalances) else "Generation"
    print_table((unit, "Began", "Took", "Because", "Who", "Slowest", "Moved"), rows)


def _slowest(rebalance: ShownRebalance) -> str:
    """The member that took longest to join, or to give up partitions, after it had heard of the rebalance."""
    took = [
        (each["joined_ms"] - each["notified_ms"], each["name"])
        for each in rebalance["members"]
        if each["joined_ms"] is not None and each["notified_ms"] is not None
    ]
    took_ms, name = max(took, default=(0, ""))
    return f"{name}, {seconds(took_ms)}" if took_ms >= NOTICEABLE_MS else ""


def _print(rebalance: ShownRebalance) -> None:
    print_line()
    unit = "Epoch" if rebalance.get("is_of_consumers") else "Generation"
    print_line(f"{unit} {rebalance['generation']}, {time_of_day(rebalance['began_ms'])}")
    for sentence in rebalance["story"]:
        print_line(f"  {sentence}")
    print_line(f"  What helps: {rebalance['advice']}")
    for line in timeline(rebalance):
        print_line(f"  {line}")


def _name(rebalance: ShownRebalance, member_id: str) -> str:
    return next((m["name"] for m in rebalance["members"] if m["member_id"] == member_id), member_id)
