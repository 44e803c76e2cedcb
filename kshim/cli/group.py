"""`kshim group`: steers the members of a group of a running server, or moves the group's offsets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from kshim.cli.addressed import of_cluster
from kshim.cli.asking import Command, Server, ask_server, of_running_server
from kshim.cli.cluster import print_moved
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table

if TYPE_CHECKING:
    from kshim.client.cluster import Cluster

_ALL = -1


@click.group()
def group() -> None:
    """Show and steer a group of a running server: its members, its coordinator, its offsets.

    Clients see what they would see if the same had happened without this command. By the address of another
    Kafka cluster there are describe, remove, empty, delete, set-offsets and reset-offsets; the others need
    kshim.

    \b
    Examples:
      kshim group describe readers -b kafka1:9092
      kshim group rebalance readers
      kshim group expire readers billing-51c2e0f4
      kshim group fence readers instance-1
      kshim group empty readers
      kshim group set-offsets readers --topic orders --partition 0 --offset 5
      kshim group reset-offsets readers --to-earliest
      kshim group reset-offsets readers --topic orders --shift -10 --dry-run
      kshim group move-coordinator readers --to 2
    """


def _command(command: Command) -> click.Command:
    """Make a command about one group of a running server. It is called with `server` and `group_id`."""
    return group.command()(click.argument("group_id", metavar="GROUP")(of_running_server(command)))


@group.command()
@click.argument("group_id", metavar="GROUP")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@of_cluster
def describe(cluster: Cluster, group_id: str, as_json: bool) -> None:
    """Show the members of GROUP, the committed offsets, and how far they are behind.

    The server is asked by its address.
    """
    from kshim.cli.by_kafka import described_group

    found = described_group(cluster, group_id)
    if as_json:
        click.echo(json.dumps(found))
        return
    print_line(f"group {group_id} is {found['state']}, coordinated by broker {found['coordinator']}")
    print_line()
    rows = [tuple("-" if each[name] is None else str(each[name]) for name in _ROW) for each in found["rows"]]
    print_table(("Topic", "Partition", "Committed", "End", "Lag", "Member", "Client", "Host"), rows)


_ROW = ("topic", "partition", "committed", "end", "lag", "member_id", "client_id", "host")


# ---- members


@_command
def rebalance(server: Server, group_id: str) -> None:
    """Start a rebalance of GROUP."""
    members = ask_server(server, "rebalance-group", group_id)
    print_line(f"group {group_id} rebalances: {_listed(members)}")


@_command
@click.argument("member")
def expire(server: Server, group_id: str, member: str) -> None:
    """End the session of MEMBER, a member id, as if the member had sent no heartbeat."""
    ask_server(server, "expire-member", group_id, member)
    print_line(f"group {group_id}: the session of {member} has ended")


@_command
@click.argument("instance")
def fence(server: Server, group_id: str, instance: str) -> None:
    """Fence the member with the group.instance.id INSTANCE, as a second client with this id does.

    The member's client gets FENCED_INSTANCE_ID. The group keeps the member's place for its session timeout.
    """
    member = ask_server(server, "fence-member", group_id, instance)
    print_line(f"group {group_id}: {member} is fenced")


@_command
@click.argument("member")
def remove(server: Server, group_id: str, member: str) -> None:
    """Remove MEMBER, a member id or a group.instance.id. A running client joins again."""
    removed = ask_server(server, "remove-member", group_id, member)
    print_line(f"group {group_id}: {removed} is removed")


@_command
def empty(server: Server, group_id: str) -> None:
    """Remove all members of GROUP. Running clients join again."""
    removed = ask_server(server, "empty-group", group_id)
    print_line(f"group {group_id} is empty; removed: {_listed(removed)}")


@_command
def delete(server: Server, group_id: str) -> None:
    """Delete GROUP and its offsets. The group must have no members."""
    ask_server(server, "delete-group", group_id)
    print_line(f"group {group_id} is deleted")


@_command
@click.option("--to", "node_id", metavar="NODE", type=int, required=True, help="The broker's node id.")
def move_coordinator(server: Server, group_id: str, node_id: int) -> None:
    """Make another broker the coordinator of GROUP, like `kshim cluster move-coordinator`."""
    print_moved(ask_server(server, "move-coordinator", group_id, node_id))


# ---- offsets


@_command
@click.option("--topic", required=True)
@click.option("--partition", type=int, required=True)
@click.option("--offset", type=int, required=True, help="The offset of the next record to read.")
def set_offsets(server: Server, group_id: str, topic: str, partition: int, offset: int) -> None:
    """Set an offset of GROUP. The group must have no members.

    The offset is set as given, even if the partition has no record at it.
    """
    _print_offsets(ask_server(server, "set-offsets", group_id, [[topic, partition, offset]]))


@_command
@click.option("--topic", help="Only this topic. Default: all topics in which the group has committed.")
@click.option("--partition", type=int, help="Only this partition. Default: all partitions of the topic.")
@click.option("--to-earliest", "place", flag_value="earliest", help="Move to the first record.")
@click.option("--to-latest", "place", flag_value="latest", help="Move to the end.")
@click.option(
    "--shift",
    metavar="N",
    type=int,
    help="Move by N records. A negative N makes the group read records again.",
)
@click.option(
    "--to-time",
    metavar="TIME",
    help="Move to the first record at or after TIME: 2026-11-23T08:00 (UTC) or 2026-11-23T08:00+01:00.",
)
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
def reset_offsets(
    server: Server,
    group_id: str,
    topic: str | None,
    partition: int | None,
    place: str | None,
    shift: int | None,
    to_time: str | None,
    dry_run: bool,
) -> None:
    """Move the offsets of GROUP. The group must have no members, but for a --dry-run."""
    if [place, shift, to_time].count(None) != 2:
        raise click.UsageError("give one of --to-earliest, --to-latest, --shift and --to-time")
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    value = 0
    if shift is not None:
        place, value = "shift", shift
    elif to_time is not None:
        place, value = "time", _since_1970_ms(to_time)
    named = [] if topic is None else [[topic, _ALL if partition is None else partition]]
    if dry_run:
        _print_plan(ask_server(server, "plan-offsets", group_id, named, place, value))
    else:
        _print_offsets(ask_server(server, "reset-offsets", group_id, named, place, value))


def _since_1970_ms(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--to-time {text} is no time: write 2026-11-23T08:00") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _listed(members: list[str]) -> str:
    return ", ".join(members) or "none"


def _print_offsets(rows: list[list[object]]) -> None:
    print_table(("Topic", "Partition", "Offset"), [tuple(map(str, row)) for row in rows])


def _print_plan(rows: list[list[object]]) -> None:
    texts = [tuple("none" if each is None else str(each) for each in row) for row in rows]
    print_table(("Topic", "Partition", "Committed", "New offset"), texts)
