"""`kshim consume`: prints the records of topics of any Kafka cluster."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import click

from kshim.cli.addressed import of_cluster
from kshim.cli.places import END, HELP, START, Place, bounds_of, offsets_at, place
from kshim.cli.record_forms import Form, Rows, is_terminal, json_form, own_form, text_form
from kshim.client import groups
from kshim.client.cluster import Cluster, Topic
from kshim.client.faults import ClientError
from kshim.client.reader import Reader, TopicPartition
from kshim.recorder.one_line import on_one_line

INTERRUPTED = 130
POLL_S = 1.0


class Wanted(NamedTuple):
    """Which records are printed."""

    topics: Sequence[str]
    partitions: Sequence[int]
    """Empty for all."""
    begin: Place
    end: Place | None
    """None for the end of each partition when the command begins."""
    follows: bool
    most: int | None
    committed_only: bool
    group: str | None


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option(
    "-p",
    "--partition",
    "partitions",
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition; may be given several times.",
)
@click.option(
    "--from", "begin", metavar="PLACE", type=place, default=START, show_default=True, help=f"Begin at {HELP}."
)
@click.option("--to", "end", metavar="PLACE", type=place, help="Stop before this place. Default: the end.")
@click.option(
    "-f", "--follow", is_flag=True, help="Do not stop at the end, but wait for more records. Ctrl-C ends it."
)
@click.option("-n", "--count", metavar="N", type=click.IntRange(min=1), help="Stop after N records.")
@click.option(
    "-g",
    "--group",
    metavar="GROUP",
    help="Go on behind the offsets that GROUP has committed, and commit what is printed. GROUP must have no "
    "members.",
)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="read_committed leaves out records of transactions that are open or aborted.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each record as a line of JSON.")
@click.option("-k", "--key-separator", metavar="TEXT", help="Print the key and TEXT before each value.")
@click.option("--null", metavar="TEXT", default="", help="Print TEXT for a key or value that is null.")
@click.option(
    "--format",
    "own",
    metavar="FORMAT",
    help=r"Print each record so: %t topic, %p partition, %o offset, %k key, %s value, %T time in ms, "
    r"%h headers, %K and %S lengths of key and value, \n, \t.",
)
@of_cluster
def consume(
    cluster: Cluster,
    topics: Sequence[str],
    partitions: Sequence[int],
    begin: Place,
    end: Place | None,
    follow: bool,
    count: int | None,
    group: str | None,
    isolation: str,
    as_json: bool,
    key_separator: str | None,
    null: str,
    own: str | None,
) -> None:
    """Print the records of each TOPIC, from the first one to those that are there now.

    On a terminal each record is a row. For another program its value is a line, unless --json or --format
    says otherwise. `kshim produce --json` writes what --json prints.

    \b
    Examples:
      kshim consume greetings
      kshim consume orders --follow --from end
      kshim consume orders --from -10 --json | jq .value
      kshim consume orders --from 2026-11-27T08:00 --to 2026-11-27T09:00
      kshim consume orders --group printers --follow
      kshim consume orders -p 0 --from 1000 -n 1 --format '%k %s\n'
      kshim consume orders -b kafka1:9093 --client-config client.properties
    """
    if follow and end is not None:
        raise click.UsageError("--follow has no end: leave out --to, or --follow")
    if begin.kind == END and not follow:
        raise click.UsageError("--from end: nothing is behind the end yet; wait for more with --follow")
    form = _form(as_json, own, key_separator, null, len(topics) > 1)
    wanted = Wanted(topics, partitions, begin, end, follow, count, isolation == "read_committed", group)
    try:
        _print(cluster, wanted, form)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _form(as_json: bool, own: str | None, key_separator: str | None, null: str, several: bool) -> Form:
    if as_json + (own is not None) + (key_separator is not None) > 1:
        raise click.UsageError("give one of --json, --format and --key-separator")
    if as_json:
        return json_form
    if own is not None:
        return own_form(own, null)
    if key_separator is None and is_terminal():
        return Rows(several)
    return text_form(key_separator, null)


def _print(cluster: Cluster, wanted: Wanted, form: Form) -> None:
    positions, ends = _bounds(cluster, wanted)
    reader = Reader(
        cluster,
        positions,
        ends=None if wanted.follows else ends,
        committed_only=wanted.committed_only,
        notice=_notice,
    )
    commits = None if wanted.group is None else Commits(cluster, wanted.group, positions)
    output = sys.stdout.buffer
    left = wanted.most
    while not reader.is_at_end and left != 0:
        for record in islice(reader.poll(POLL_S), left):
            output.write(form(record))
            left = None if left is None else left - 1
        output.flush()
        if commits is not None:
            commits.commit(reader.positions)


class Commits:
    """Commits the positions of a group without members, when they have changed."""

    def __init__(self, cluster: Cluster, group_id: str, positions: Mapping[TopicPartition, int]) -> None:
        """Raises ClientError if the group has members."""
        self._cluster = cluster
        self._group_id = group_id
        self._committed = dict(positions)
        groups.check_empty(cluster, group_id, "kshim consume would read beside them")

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit the positions. Raises ClientError."""
        changed = {each: at for each, at in positions.items() if self._committed[each] != at}
        if changed:
            groups.commit(self._cluster, self._group_id, changed)
            self._committed.update(changed)


def _bounds(
    cluster: Cluster, wanted: Wanted
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    """Where each partition begins and ends for the command. Raises ClientError."""
    positions: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    committed = {} if wanted.group is None else groups.committed(cluster, wanted.group)
    for name in dict.fromkeys(wanted.topics):
        topic = cluster.led_topic(name)
        chosen = _chosen(topic, wanted.partitions)
        bounds = bounds_of(cluster, topic, chosen, committed_only=wanted.committed_only)
        begin = offsets_at(cluster, topic, bounds, wanted.begin)
        end = bounds.end if wanted.end is None else offsets_at(cluster, topic, bounds, wanted.end)
        positions.update(((name, each), committed.get((name, each), at)) for each, at in begin.items())
        ends.update(((name, each), at) for each, at in end.items())
    return positions, ends


def _chosen(topic: Topic, partitions: Sequence[int]) -> Sequence[int]:
    for each in partitions:
        if each not in topic.partitions:
            raise ClientError(f"{topic.name} has the partitions 0 to {len(topic.partitions) - 1}, not {each}")
    return partitions or list(topic.partitions)


def _notice(line: str) -> None:
    click.echo(on_one_line(f"kshim: {line}"), err=True)
