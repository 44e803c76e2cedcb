"""Apache Kafka's own tools print the same about a group in kshim as about the same group in Apache Kafka."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from difflib import unified_diff

import pytest

from integration.apache_kafka.tools import CONSOLE_CONSUMER, CONSUMER_GROUPS, TOPICS, Tools
from integration.differential.playing.pairs import Pair, create_topic
from integration.differential.playing.player import Target, play
from integration.differential.words.groups import answered, commit, enter, leave, pause, rejoin, sync
from integration.differential.words.history import History
from integration.support.clients import new_producer
from kshim.coordination.shards import partition_for
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)

ERA = 9
GROUP = "told-by-tools"
READ, FREE = "tools-read", "tools-free"
"""The topic that the group reads, and one for which it only has offsets."""
PARTITIONS, RECORDS = 2, 10
FIRST_TIMESTAMP_S = int(time.time()) - 3600
"""The first record's timestamp; the others follow at intervals of a second."""
OFFSETS_PARTITION = partition_for(GROUP, 50)


def _assigned(partition: int) -> bytes:
    assigned = TopicPartition(topic=READ, partitions=(partition,))
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=(assigned,)))


SUBSCRIPTION = encode_subscription(ConsumerProtocolSubscription(topics=(READ,)))
SUBSCRIBED = {"protocols": [("range", SUBSCRIPTION)], "session_ms": 1_800_000}
STABLE = History(
    "two members, each with a partition and commits",
    cases=(),
    steps=[
        enter("alice", **SUBSCRIBED),
        sync("alice", assign={"alice": _assigned(0)}),
        enter("bob", **SUBSCRIBED, wait=False),
        pause(0),
        rejoin("alice", **SUBSCRIBED),
        answered("bob"),
        sync("bob", 2, wait=False),
        sync("alice", 2, assign={"alice": _assigned(0), "bob": _assigned(1)}),
        answered("bob"),
        commit("alice", 2, offsets={(READ, 0): 4, (FREE, 0): 2, (FREE, 1): 3}, metadata="half"),
        commit("bob", 2, offsets={(READ, 1): 7}, metadata="", leader_epoch=0),
    ],
).at(ERA)

GROUPS = f"{CONSUMER_GROUPS} --bootstrap-server SERVER"
RECORDS_OF = (
    f"{CONSOLE_CONSUMER} --bootstrap-server SERVER --topic __consumer_offsets --partition {OFFSETS_PARTITION}"
    " --offset earliest --timeout-ms 2000 --formatter org.apache.kafka.tools.consumer."
)
LOOKS = [
    f"{GROUPS} --list",
    f"{GROUPS} --list --state",
    f"{GROUPS} --list --state Stable",
    f"{GROUPS} --list --state Empty,Dead",
    f"{GROUPS} --list --type",
    f"{GROUPS} --list --type classic",
    f"{GROUPS} --describe --group {GROUP}",
    f"{GROUPS} --describe --group {GROUP} --offsets --verbose",
    f"{GROUPS} --describe --group {GROUP} --members",
    f"{GROUPS} --describe --group {GROUP} --members --verbose",
    f"{GROUPS} --describe --group {GROUP} --state",
    f"{GROUPS} --describe --group {GROUP} --state --verbose",
    f"{GROUPS} --describe --all-groups --state",
    f"{GROUPS} --describe --group not-there",
    f"{RECORDS_OF}OffsetsMessageFormatter",
    f"{RECORDS_OF}GroupMetadataMessageFormatter",
]
RESET = f"{GROUPS} --reset-offsets --group {GROUP}"
WHILE_STABLE = [
    f"{TOPICS} --bootstrap-server SERVER --describe --topic __consumer_offsets",
    f"{TOPICS} --bootstrap-server SERVER --list",
    f"{TOPICS} --bootstrap-server SERVER --list --exclude-internal",
    *LOOKS,
    f"{RESET} --topic {READ} --to-earliest --execute",
    f"{GROUPS} --delete --group {GROUP}",
    f"{GROUPS} --delete-offsets --group {GROUP} --topic {READ}",
    f"{GROUPS} --delete-offsets --group {GROUP} --topic {FREE}:1",
    f"{GROUPS} --describe --group {GROUP} --offsets",
]
WHILE_EMPTY = [
    *LOOKS,
    f"{RESET} --topic {READ} --to-earliest --dry-run",
    f"{RESET} --topic {READ} --to-latest --execute",
    f"{RESET} --topic {READ}:0 --to-offset 3 --execute",
    f"{RESET} --topic {READ}:1 --shift-by -4 --execute",
    f"{RESET} --all-topics --shift-by 100 --dry-run",
    f"{RESET} --topic {READ} --to-datetime FOURTH --execute",
    f"{RESET} --topic {READ} --by-duration PT0S --dry-run",
    f"{RESET} --all-topics --to-current --export",
    f"{RESET} --topic not-there --to-earliest --execute",
    f"{GROUPS} --reset-offsets --group new-{GROUP} --topic {FREE} --to-latest --execute",
    f"{GROUPS} --describe --group new-{GROUP} --state",
    f"{GROUPS} --describe --group {GROUP} --offsets",
    f"{GROUPS} --delete-offsets --group {GROUP} --topic {READ}:0",
    f"{GROUPS} --delete-offsets --group {GROUP} --topic {FREE} --topic not-there",
    f"{GROUPS} --delete-offsets --group not-there --topic {READ}",
    f"{GROUPS} --describe --group {GROUP}",
    f"{GROUPS} --delete --group {GROUP} --group not-there",
    f"{GROUPS} --delete --group new-{GROUP}",
    f"{GROUPS} --describe --group {GROUP} --state",
    f"{RECORDS_OF}OffsetsMessageFormatter",
    f"{RECORDS_OF}GroupMetadataMessageFormatter",
]
COMMANDS = [
    *((number, command) for number, command in enumerate(WHILE_STABLE)),
    *((number, command) for number, command in enumerate(WHILE_EMPTY, len(WHILE_STABLE))),
]

MEANS_NOTHING = [
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r'(imestamp(Ms)?"?[=:]) ?\d+'), r"\1<time>"),
    (re.compile(r"TopicId: \S+"), "TopicId: <id>"),
    (re.compile(r',"topicId":"[^"]+"'), ""),  # Kafka 4.4 stores it with each offset
    (re.compile(r"(Leader|Replicas|Isr): \d+"), r"\1: <node>"),
    (re.compile(r"(127\.0\.0\.1:)\d+ +\(\d+\)"), r"\1<port> (<node>)"),
    (re.compile(r"min\.insync\.replicas=1,"), ""),  # same as the default; Kafka sets it cluster-wide
    (re.compile(r'\}\{"key"'), '}\n{"key"'),
    (re.compile(r" {2,}"), "  "),
]
MEMBERS = re.compile(r'(?<="members":)\[\{(.*)\}\]')
"""A group's members, in the order of a hash map."""
OURS = re.compile(rf"{GROUP}|{READ}|{FREE}|not-there|__consumer_offsets|^[A-Z -]+$|Error|Usage")


def _plain(text: str) -> list[str]:
    """The lines about this test's group and topics."""
    for pattern, instead in MEANS_NOTHING:
        text = pattern.sub(instead, text)
    lines = [line.strip() for line in text.splitlines() if OURS.search(line)]
    return [MEMBERS.sub(_sorted_members, line) for line in lines]


def _sorted_members(found: re.Match[str]) -> str:
    return "[{" + "},{".join(sorted(found[1].split("},{"))) + "}]"


def _fill(target: Target) -> None:
    for topic in (READ, FREE):
        create_topic(target, topic, PARTITIONS)
    producer = new_producer(f"{target.host}:{target.port}")
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            timestamp_ms = 1000 * (FIRST_TIMESTAMP_S + number)
            producer.send(READ, b"record", partition=partition, timestamp_ms=timestamp_ms).get(10)
    producer.close()


async def _form_group(target: Target) -> list[str]:
    """Returns the ids of the members."""
    transcript = await play(STABLE, ERA, GROUP, target)
    return [*transcript.ids("alice"), *transcript.ids("bob")]


def _tell(target: Target, class_path: str) -> list[list[str]]:
    """The output of all commands for one server, in their order."""
    fourth = datetime.fromtimestamp(FIRST_TIMESTAMP_S + 4, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
    _fill(target)
    members = asyncio.run(_form_group(target))
    tools = Tools(class_path)
    printed = []
    try:
        for number, command in COMMANDS:
            if number == len(WHILE_STABLE):
                steps = [leave("admin", *((member_id, None) for member_id in members))]
                asyncio.run(play(steps, ERA, GROUP, target))
            address = f"{target.host}:{target.port}"
            words = shlex.split(command.replace("FOURTH", fourth).replace("SERVER", address))
            done = tools.run(*words)
            lines = _plain(done.text)
            if "formatter" not in command:
                lines.sort()
            printed.append([f"exit status {done.status}", *lines])
    finally:
        tools.close()
    return printed


@pytest.fixture(scope="module")
def printed(pair_named: Callable[[str], Pair], class_path: str) -> Sequence[Sequence[list[str]]]:
    """The output of each command for Apache Kafka and for kshim. Both are asked at the same time."""
    targets = pair_named("alone").targets
    with ThreadPoolExecutor() as threads:
        return list(threads.map(_tell, targets, [class_path] * len(targets)))


def _name(value: object) -> str | None:
    """A command's name in the test's id: the tool and its arguments."""
    if not isinstance(value, str):
        return None
    tool, _, options = value.partition(" --bootstrap-server SERVER ")
    return f"{tool.rpartition('.')[2]} {options.rpartition('.')[2] if 'formatter' in options else options}"


@pytest.mark.parametrize(("number", "command"), COMMANDS, ids=_name)
def test_tools_print_the_same(number: int, command: str, printed: Sequence[Sequence[list[str]]]) -> None:
    apache_kafka, kshim = (lines[number] for lines in printed)
    assert len(apache_kafka) > 1, "Apache Kafka says nothing about the test's own group and topics"
    lines = unified_diff(apache_kafka, kshim, "Apache Kafka", "kshim", lineterm="", n=0)
    assert kshim == apache_kafka, "\n".join(lines)
