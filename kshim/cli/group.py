"""`kshim group`: steers the members of a group of a running server, or moves the group's offsets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from kshim.cli.asking import Command, ask_server, of_running_server
from kshim.cli.cluster import print_moved
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table

_ALL = -1


@click.group()
def group() -> None:
    """Steer a group of a running server: its members, its coordinator, its offsets.

    Clients see what they would see if the same had happened without this command.

    \b
    Examples:
      kshim group rebalance readers
      kshim group expire readers billing-51c2e0f4
      kshim group fence readers instance-1
      kshim group empty readers
      kshim group set-offsets readers --topic orders --partition 0 --offset 5
      kshim group reset-offsets readers --to-earliest
      kshim group reset-offsets readers --topic orders --shift -10
      kshim group move-coordinator readers --to 2
    """


def _command(command: Command) -> click.Command:
    """Make a command about one group of a running server. It is called with `path` and `group_id`."""
    return group.command()(click.argument("group_id", metavar="GROUP")(of_running_server(command)))


# ---- members


@_command
def rebalance(path: Path, group_id: str) -> None:
    """Start a rebalance of GROUP."""
    members = ask_server(path, "rebalance-group", group_id)
    print_line(f"group {group_id} rebalances: {_listed(members)}")


@_command
@click.argument("member")
def expire(path: Path, group_id: str, member: str) -> None:
    """End the session of MEMBER, a member id, as if the member had sent no heartbeat."""
    ask_server(path, "expire-member", group_id, member)
    print_line(f"group {group_id}: the session of {member} has ended")


@_command
@click.argument("instance")
def fence(path: Path, group_id: str, instance: str) -> None:
    """Fence the member with the group.instance.id INSTANCE, as a second client with this id does.

    The member's client gets FENCED_INSTANCE_ID. The group keeps the member's place for its session timeout.
    """
    member = ask_server(path, "fence-member", group_id, instance)
    print_line(f"group {group_id}: {member} is fenced")


@_command
@click.argument("member")
def remove(path: Path, group_id: str, member: str) -> None:
    """Remove MEMBER, a member id or a group.instance.id. A running client joins again."""
    removed = ask_server(path, "remove-member", group_id, member)
    print_line(f"group {group_id}: {removed} is removed")


@_command
def empty(path: Path, group_id: str) -> None:
    """Remove all members of GROUP. Running clients join again."""
    removed = ask_server(path, "empty-group", group_id)
    print_line(f"group {group_id} is empty; removed: {_listed(removed)}")


@_command
def delete(path: Path, group_id: str) -> None:
    """Delete GROUP and its offsets. The group must have no members."""
    ask_server(path, "delete-group", group_id)
    print_line(f"group {group_id} is deleted")


@_command
@click.option("--to", "node_id", metavar="NODE", type=int, required=True, help="The broker's node id.")
def move_coordinator(path: Path, group_id: str, node_id: int) -> None:
    """Make another broker the coordinator of GROUP, like `kshim cluster move-coordinator`."""
    print_moved(ask_server(path, "move-coordinator", group_id, node_id))


# ---- offsets


@_command
@click.option("--topic", required=True)
@click.option("--partition", type=int, required=True)
@click.option("--offset", type=int, required=True, help="The offset of the next record to read.")
def set_offsets(path: Path, group_id: str, topic: str, partition: int, offset: int) -> None:
    """Set an offset of GROUP. The group must have no members.

    The offset is set as given, even if the partition has no record at it.
    """
    _print_offsets(ask_server(path, "set-offsets", group_id, [[topic, partition, offset]]))


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
def reset_offsets(
    path: Path,
    group_id: str,
    topic: str | None,
    partition: int | None,
    place: str | None,
    shift: int | None,
    to_time: str | None,
) -> None:
    """Move the offsets of GROUP. The group must have no members."""
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
    _print_offsets(ask_server(path, "reset-offsets", group_id, named, place, value))


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
