"""`kshim topic`: lists, creates, describes, alters and deletes topics of any Kafka cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kshim.cli.addressed import of_cluster
from kshim.cli.faults import fail
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table

if TYPE_CHECKING:
    from kshim.client.cluster import Cluster, Topic
    from kshim.client.faults import ClientError
    from kshim.client.topics import Config


@click.group()
def topic() -> None:
    """List, create, describe, alter and delete topics, of kshim or of any other Kafka cluster.

    \b
    Examples:
      kshim topic list
      kshim topic create orders --partitions 6
      kshim topic create users --set cleanup.policy=compact
      kshim topic describe orders -b kafka1:9092
      kshim topic alter orders --partitions 12 --set retention.ms=3600000
      kshim topic delete orders
    """


_names = click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _settings(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help="Set one config of the topic, by Kafka's own name; may be given several times.",
    )(command)


@topic.command("list")
@click.option("--internal", is_flag=True, help="List internal topics as well.")
@click.option("--names", "only_names", is_flag=True, help="Print only the names, one a line.")
@_json
@of_cluster
def list_topics(cluster: Cluster, internal: bool, only_names: bool, as_json: bool) -> None:
    """List the topics."""
    topics = [each for each in cluster.topics() if internal or not each.is_internal]
    if as_json:
        click.echo(json.dumps([_listed(each) for each in topics]))
    elif only_names:
        for each in topics:
            print_line(each.name)
    elif not topics:
        print_line("there are no topics")
    else:
        rows = [(each.name, str(len(each.partitions)), str(_replicas(each))) for each in topics]
        print_table(("Topic", "Partitions", "Replicas"), rows)


@topic.command()
@_names
@click.option("-p", "--partitions", metavar="N", type=click.IntRange(min=1), help="Default: the broker's.")
@click.option("-r", "--replicas", metavar="N", type=click.IntRange(min=1), help="Default: the broker's.")
@_settings
@click.option("--if-not-exists", is_flag=True, help="A topic that exists is no error.")
@click.option("--dry-run", is_flag=True, help="Create nothing; only let the broker check the request.")
@of_cluster
def create(
    cluster: Cluster,
    names: Sequence[str],
    partitions: int | None,
    replicas: int | None,
    settings: Sequence[str],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create each TOPIC."""
    from kshim.client import topics
    from schemas.error_code import ErrorCode

    configs = _configs(settings)

    def one(name: str) -> str:
        topics.create(
            cluster, name, partitions=partitions, replicas=replicas, configs=configs, only_check=dry_run
        )
        return f"topic {name} {'can be' if dry_run else 'is'} created"

    _for_each(names, one, {ErrorCode.TOPIC_ALREADY_EXISTS} if if_not_exists else set(), configs)


@topic.command()
@_names
@click.option("--all-configs", is_flag=True, help="Show defaults as well, not only the topic's own configs.")
@_json
@of_cluster
def describe(cluster: Cluster, names: Sequence[str], all_configs: bool, as_json: bool) -> None:
    """Show the partitions, offsets and configs of each TOPIC."""
    from kshim.client.topics import configs

    described = []
    for name in names:
        found = cluster.topic(name)
        chosen = [each for each in configs(cluster, name) if all_configs or each.is_own]
        described.append((found, chosen, _partitions(cluster, found)))
    if as_json:
        click.echo(json.dumps([_described(*each) for each in described]))
        return
    for number, each in enumerate(described):
        if number:
            print_line()
        _print_described(*each)


@topic.command()
@_names
@click.option("-p", "--partitions", metavar="N", type=click.IntRange(min=1), help="The new number.")
@_settings
@click.option(
    "--unset",
    metavar="KEY",
    multiple=True,
    help="Make one config the broker's default again; may be given several times.",
)
@of_cluster
def alter(
    cluster: Cluster,
    names: Sequence[str],
    partitions: int | None,
    settings: Sequence[str],
    unset: Sequence[str],
) -> None:
    """Add partitions to each TOPIC, and set or unset its configs."""
    from kshim.client import topics

    configs = _configs(settings)
    if partitions is None and not configs and not unset:
        raise click.UsageError("give --partitions, --set or --unset")

    def one(name: str) -> str:
        before = cluster.topic(name)
        if partitions is not None and partitions != len(before.partitions):
            topics.add_partitions(cluster, name, partitions)
        if configs or unset:
            topics.alter_configs(cluster, name, configs, unset)
        return f"topic {name} is altered"

    _for_each(names, one, set(), {**configs, **dict.fromkeys(unset, "")})


@topic.command()
@_names
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@of_cluster
def delete(cluster: Cluster, names: Sequence[str], if_exists: bool) -> None:
    """Delete each TOPIC with its records."""
    from kshim.client import topics
    from kshim.client.faults import Refused
    from schemas.error_code import ErrorCode

    def one(name: str) -> str:
        try:
            topics.delete(cluster, name)
        except Refused as refused:
            if refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not if_exists:
                cluster.topic(name)  # raises an error with the names that are most like it
            raise
        return f"topic {name} is deleted"

    _for_each(names, one, {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if if_exists else set(), {})


def _for_each(
    names: Sequence[str], one: Callable[[str], str], is_fine: set[Any], configs: Mapping[str, str]
) -> None:
    """Run `one` for each name, and print the line that it returns. Afterwards print the refusals, and exit
    with status 2 if there were any. is_fine: error codes that count as done.
    """
    from kshim.client.faults import ClientError, Refused, Unreachable

    problems = []
    for name in names:
        try:
            print_line(one(name))
        except Unreachable:
            raise
        except ClientError as error:
            if isinstance(error, Refused) and error.error_code in is_fine:
                print_line(str(error))
            else:
                problems.append(f"{error}{_nearest(error, configs)}")
    if problems:
        fail(*problems)


def _nearest(error: ClientError, configs: Mapping[str, str]) -> str:
    """Return the names that are most like an unknown config, if the broker refused one."""
    from kshim.client.faults import Refused, did_you_mean
    from kshim.configs.topics import TOPIC_CONFIGS
    from schemas.error_code import ErrorCode

    wrong = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
    if not isinstance(error, Refused) or error.error_code not in wrong:
        return ""
    unknown = [name for name in configs if name not in TOPIC_CONFIGS]
    return did_you_mean(unknown[0], TOPIC_CONFIGS.keys()) if unknown else ""


def _configs(settings: Sequence[str]) -> dict[str, str]:
    found = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--set {setting}: expected KEY=VALUE, as in --set retention.ms=3600000")
        found[key.strip()] = text
    return found


def _replicas(topic: Topic) -> int:
    return max((len(each.replicas) for each in topic.partitions.values()), default=0)


def _partitions(cluster: Cluster, topic: Topic) -> list[dict[str, Any]]:
    """The partitions as JSON. The offsets of one without a leader are null."""
    from kshim.client.cluster import NO_LEADER
    from kshim.client.offsets import EARLIEST, LATEST, offsets

    served = [each.number for each in topic.partitions.values() if each.leader != NO_LEADER]
    first = offsets(cluster, topic, served, EARLIEST) if served else {}
    after = offsets(cluster, topic, served, LATEST) if served else {}
    return [
        {
            "partition": each.number,
            "leader": None if each.leader == NO_LEADER else each.leader,
            "leader_epoch": each.leader_epoch,
            "replicas": list(each.replicas),
            "in_sync": list(each.in_sync),
            "first_offset": first.get(each.number),
            "next_offset": after.get(each.number),
        }
        for each in topic.partitions.values()
    ]


def _listed(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": str(topic.topic_id),
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": _replicas(topic),
    }


def _described(topic: Topic, configs: Sequence[Config], partitions: list[dict[str, Any]]) -> dict[str, Any]:
    shown = {each.name: each.value for each in configs}
    return {**_listed(topic), "configs": shown, "partitions": partitions}


def _print_described(topic: Topic, configs: Sequence[Config], partitions: list[dict[str, Any]]) -> None:
    print_line(f"topic {topic.name}{' (internal)' if topic.is_internal else ''}, id {topic.topic_id}")
    print_line()
    rows = [
        (
            str(each["partition"]),
            _text(each["leader"], "none"),
            str(each["leader_epoch"]),
            ",".join(map(str, each["replicas"])),
            ",".join(map(str, each["in_sync"])) or "none",
            _text(each["first_offset"], "-"),
            _text(each["next_offset"], "-"),
        )
        for each in partitions
    ]
    titles = ("Partition", "Leader", "Epoch", "Replicas", "In sync", "First offset", "Next offset")
    print_table(titles, rows)
    if configs:
        print_line()
        shown = [(each.name, _text(each.value, "(secret)"), each.source) for each in configs]
        print_table(("Config", "Value", "Set by"), shown)


def _text(value: object, otherwise: str) -> str:
    return otherwise if value is None else str(value)
