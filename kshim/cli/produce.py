"""`kshim produce`: writes the lines of its standard input to a topic of any Kafka cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import click

from kshim.cli.addressed import of_cluster
from kshim.cli.faults import EXIT_USAGE
from kshim.cli.input_lines import LineTooLong, input_lines
from kshim.cli.json_records import WrongRecord, parse_record
from kshim.client import topics
from kshim.client.batches import NoPartition
from kshim.client.cluster import Cluster
from kshim.client.faults import Refused
from kshim.client.producer import Producer, Settings, Settled
from kshim.client.record import NewRecord, NotWritten
from kshim.recorder.one_line import on_one_line
from schemas.error_code import ErrorCode
from schemas.records.compression import Compression

ACKS = {"all": -1, "1": 1, "0": 0}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class WrongLine(ValueError):
    """A line of the input is no record. str() names the line and says why."""


class LineForm(NamedTuple):
    """How a line of text is read."""

    key_separator: bytes | None
    key: bytes | None
    null: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    partition: int | None


@click.command()
@click.argument("topic")
@click.option(
    "--json", "as_json", is_flag=True, help="Lines are records as `kshim consume --json` prints them."
)
@click.option("-k", "--key-separator", metavar="TEXT", help="Each line is a key, TEXT, and a value.")
@click.option("--key", metavar="KEY", help="The key of all records.")
@click.option("--null", metavar="TEXT", help="A key or value that is TEXT becomes null.")
@click.option(
    "-H",
    "--header",
    "headers",
    metavar="NAME=VALUE",
    multiple=True,
    help="A header of all records; may be given several times.",
)
@click.option(
    "-p",
    "--partition",
    metavar="N",
    type=click.IntRange(min=0),
    help="Write to this partition. Default: the one that Kafka's clients choose by the key.",
)
@click.option(
    "--repartition", is_flag=True, help="Choose partitions by the keys, also where lines of --json name one."
)
@click.option(
    "-z", "--compression", type=click.Choice(CODECS), default="none", show_default=True, help="The codec."
)
@click.option(
    "--acks",
    type=click.Choice(list(ACKS)),
    default="all",
    show_default=True,
    help="Which replicas must have a record before it counts as written; 0 waits for no answer.",
)
@click.option("--create", is_flag=True, help="Create the topic, if it does not exist.")
@click.option(
    "--positions", is_flag=True, help="Print the partition and offset of each record, as a line of JSON."
)
@of_cluster
def produce(
    cluster: Cluster,
    topic: str,
    as_json: bool,
    key_separator: str | None,
    key: str | None,
    null: str | None,
    headers: Sequence[str],
    partition: int | None,
    repartition: bool,
    compression: str,
    acks: str,
    create: bool,
    positions: bool,
) -> None:
    """Write the lines of standard input to TOPIC, each as one record.

    Lines are sent as they come, so this can stand behind `tail -f`. With --acks all, the default, no record
    is written twice. For each record that the broker refuses, a line on standard error names the line of
    the input; the others are written, and the exit status is 2.

    \b
    Examples:
      echo hello | kshim produce greetings
      kshim produce orders --key-separator : <orders.txt
      kshim produce orders --key 42 -H source=test --compression zstd <orders.txt
      kshim consume orders --json | kshim produce orders -b other:9092 --json
      echo '{"key": "a", "value": null}' | kshim produce users --json
    """
    if as_json and (key_separator, key, null) != (None, None, None):
        raise click.UsageError("--json has keys and nulls in its lines, so no --key-separator, --key, --null")
    if key_separator == "":
        raise click.UsageError("--key-separator: expected at least one character")
    form = LineForm(
        key_separator=_bytes(key_separator),
        key=_bytes(key),
        null=_bytes(null),
        headers=tuple(map(_header, headers)),
        partition=partition,
    )
    read = _json_reader(form, repartition) if as_json else _text_reader(form)
    _produce(cluster, topic, read, compression, ACKS[acks], create, _Report(positions))


def _produce(
    cluster: Cluster,
    topic: str,
    read: Callable[[bytes, int], NewRecord],
    compression: str,
    acks: int,
    create: bool,
    report: _Report,
) -> None:
    if create:
        try:
            topics.create(cluster, topic)
        except Refused as refused:
            if refused.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        cluster.led_topic(topic, create=True)  # brokers hear of a new topic one after the other
    producer = Producer(cluster, topic, Settings(acks, Compression[compression.upper()]))
    if sys.stdin.isatty():
        click.echo("Each line becomes a record. Ctrl-D ends.", err=True)
    wrong, number = "", 0
    try:
        for record in _records(read):
            if record is None:
                report.take(producer.flush())
            else:
                number = record.number
                report.take(producer.add(record))
    except (LineTooLong, WrongLine) as error:
        wrong = str(error)
    except NoPartition as error:
        wrong = f"line {number}: {error}"
    report.take(producer.flush())
    if wrong:
        raise click.ClickException(f"{wrong}; the lines before it are written")
    if report.refused:
        sys.exit(EXIT_USAGE)


def _records(read: Callable[[bytes, int], NewRecord]) -> Iterator[NewRecord | None]:
    """Yield the records of standard input; None when no more input waits. Raises WrongLine, LineTooLong."""
    number = 0
    for line in input_lines(sys.stdin.fileno()):
        if line is None:
            yield None
            continue
        number += 1
        try:
            yield read(line, number)
        except WrongRecord as error:
            raise WrongLine(f"line {number}: {error}") from None


def _text_reader(form: LineForm) -> Callable[[bytes, int], NewRecord]:
    separator = form.key_separator

    def read(line: bytes, number: int) -> NewRecord:
        key, value = form.key, line
        if separator is not None:
            before, found, value = line.partition(separator)
            if not found:
                raise WrongRecord(f"expected a key, {separator.decode()!r} and a value")
            key = before
        key, value_or_null = (None if part == form.null else part for part in (key, value))
        return NewRecord(key, value_or_null, form.headers, None, form.partition, number)

    return read


def _json_reader(form: LineForm, repartition: bool) -> Callable[[bytes, int], NewRecord]:
    def read(line: bytes, number: int) -> NewRecord:
        record = parse_record(line, number)
        named = None if repartition else record.partition
        partition = named if form.partition is None else form.partition
        return record._replace(headers=record.headers + form.headers, partition=partition)

    return read


class _Report:
    """Prints what became of records."""

    def __init__(self, positions: bool) -> None:
        self._positions = positions
        self.refused = 0

    def take(self, settled: Iterable[Settled]) -> None:
        for each in settled:
            if isinstance(each, NotWritten):
                self.refused += 1
                click.echo(on_one_line(f"kshim: line {each.record.number}: {each.why}"), err=True)
            elif self._positions:
                for at, record in enumerate(each.records):
                    offset = each.base_offset + at if each.base_offset >= 0 else None
                    shown = {"line": record.number, "partition": each.partition, "offset": offset}
                    click.echo(json.dumps(shown))


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--header {text}: expected NAME=VALUE, as in --header source=test")
    return name, value.encode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
