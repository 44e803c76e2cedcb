"""Apache Kafka's own tools for administrators print the same about both."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from integration.apache_kafka.tools import CONFIGS, TOPICS, Tools
from integration.differential.playing.pairs import Pair
from integration.differential.stories.admin import OF_GROUPS, PER_SERVER, READ_ONLY_HERE
from integration.support.server import Server

OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
PATIENCE_S = 5
IMPATIENT = "request.timeout.ms=3000\ndefault.api.timeout.ms=3000\n"
"""The timeout of a command that waits for a broker that does not exist; the default is a minute."""
AT = "--bootstrap-server SERVER"
OF_TOPIC = f"{CONFIGS} {AT} --entity-type topics --entity-name toolbox"
OF_BROKER = f"{CONFIGS} {AT} --entity-type brokers --entity-name 1"
OF_GROUP = f"{CONFIGS} {AT} --entity-type groups --entity-name toolbox"
OF_ALL = f"{CONFIGS} {AT} --entity-type brokers --entity-default"
OF_USER = f"{CONFIGS} {AT} --entity-type users --entity-name toolbox"
QUOTAS = {
    "users --entity-name toolbox": "producer_byte_rate=10240,consumer_byte_rate=20480.0",
    "users --entity-default": "request_percentage=10000.5",
    "clients --entity-name toolbox": "controller_mutation_rate=1000000",
    "clients --entity-default": "producer_byte_rate=1000000000",
    "users --entity-name toolbox --entity-type clients --entity-name toolbox": "consumer_byte_rate=1e10",
    "users --entity-name toolbox --entity-type clients --entity-default": "consumer_byte_rate=1e9",
    "users --entity-default --entity-type clients --entity-name toolbox": "producer_byte_rate=1e9",
    "users --entity-default --entity-type clients --entity-default": "request_percentage=9000",
    "ips --entity-name 10.0.0.8": "connection_creation_rate=100",
    "ips --entity-default": "connection_creation_rate=100000",
}
"""Entities, as kafka-configs names them, and quotas for them; too large to limit these tools."""
MANY = ("users", "clients", "ips", "users --entity-type clients")

COMMANDS = [
    f"{TOPICS} {AT} --create --topic toolbox --partitions 3 --config retention.ms=1000",
    f"{TOPICS} {AT} --describe --topic toolbox",
    f"{TOPICS} {AT} --create --topic toolbox",
    f"{TOPICS} {AT} --create --topic toolbox --if-not-exists",
    f"{TOPICS} {AT} --create --topic toolbox2 --config x=y",
    f"{TOPICS} {AT} --create --topic toolbox2 --config retention.ms=x",
    f"{TOPICS} {AT} --create --topic toolbox2 --replica-assignment 1,1",
    f"{TOPICS} {AT} --create --topic toolbox3 --replica-assignment 7",
    f"{TOPICS} {AT} --create --topic toolbox3 --replication-factor 3",
    f"{TOPICS} {AT} --create --topic toolbox3 --partitions 0",
    f"{TOPICS} {AT} --describe --topic toolbox.*",
    f"{TOPICS} {AT} --list --topic toolbox.*",
    f"{TOPICS} {AT} --alter --topic toolbox --partitions 5",
    f"{TOPICS} {AT} --alter --topic toolbox --partitions 2",
    f"{TOPICS} {AT} --alter --topic toolbox9 --partitions 2",
    f"{TOPICS} {AT} --describe --topic toolbox9",
    f"{TOPICS} {AT} --describe --under-replicated-partitions --topic toolbox",
    f"{TOPICS} {AT} --describe --unavailable-partitions --topic toolbox",
    f"{TOPICS} {AT} --describe --at-min-isr-partitions --topic toolbox",
    f"{TOPICS} {AT} --describe --topics-with-overrides --topic toolbox",
    f"{OF_TOPIC} --describe",
    f"{OF_TOPIC} --describe --all",
    f"{OF_TOPIC} --alter --add-config retention.ms=5000,flush.ms=7,cleanup.policy=[compact,delete]",
    f"{OF_TOPIC} --describe",
    f"{TOPICS} {AT} --describe --topic toolbox",
    f"{OF_TOPIC} --alter --delete-config retention.ms",
    f"{OF_TOPIC} --describe",
    f"{OF_TOPIC} --alter --delete-config retention.ms",
    f"{OF_TOPIC} --alter --add-config nope=1",
    f"{OF_TOPIC} --alter --add-config retention.ms=x",
    f"{CONFIGS} {AT} --describe --entity-type topics --entity-name toolbox9",
    f"{CONFIGS} {AT} --alter --entity-type topics --entity-name toolbox9 --add-config retention.ms=1",
    f"{OF_BROKER} --describe",
    f"{OF_BROKER} --describe --all",
    f"{OF_ALL} --alter --add-config log.index.interval.bytes=5000",
    f"{OF_ALL} --describe",
    f"{OF_BROKER} --alter --add-config log.index.interval.bytes=6000,log.preallocate=false",
    f"{OF_BROKER} --describe",
    f"{OF_TOPIC} --describe --all",
    f"{OF_BROKER} --alter --add-config num.partitions=2",
    f"{OF_BROKER} --alter --add-config log.index.interval.bytes=x",
    f"{CONFIGS} {AT} --command-config IMPATIENT --alter --entity-type brokers --entity-name 2"
    " --add-config log.preallocate=true",
    f"{OF_BROKER} --alter --delete-config log.index.interval.bytes,log.preallocate",
    f"{OF_ALL} --alter --delete-config log.index.interval.bytes",
    f"{OF_ALL} --describe",
    f"{CONFIGS} {AT} --describe --entity-type brokers",
    f"{CONFIGS} {AT} --describe --entity-type clients",
    f"{CONFIGS} {AT} --describe --entity-type ips",
    f"{OF_GROUP} --describe",
    f"{OF_GROUP} --describe --all",
    f"{OF_GROUP} --alter --add-config consumer.session.timeout.ms=46000,share.isolation.level=read_committed",
    f"{OF_GROUP} --describe",
    f"{OF_GROUP} --describe --all",
    f"{CONFIGS} {AT} --describe --group toolbox",
    f"{CONFIGS} {AT} --describe --entity-type groups",
    f"{OF_GROUP} --alter --add-config nope=1",
    f"{OF_GROUP} --alter --add-config consumer.session.timeout.ms=1000",
    f"{OF_GROUP} --alter --add-config consumer.session.timeout.ms=x",
    f"{CONFIGS} {AT} --alter --entity-type groups --entity-default --add-config share.delivery.count.limit=3",
    f"{OF_GROUP} --alter --delete-config consumer.session.timeout.ms",
    f"{OF_GROUP} --alter --delete-config consumer.session.timeout.ms",
    f"{OF_GROUP} --alter --delete-config share.isolation.level",
    f"{OF_GROUP} --describe",
    f"{OF_USER} --alter --add-config producer_byte_rate=1024,request_percentage=12.5",
    f"{OF_USER} --describe",
    f"{OF_USER} --alter --add-config producer_byte_rate=-1",
    f"{OF_USER} --alter --delete-config producer_byte_rate,request_percentage",
    f"{OF_USER} --describe",
    f"{OF_USER} --alter --add-config SCRAM-SHA-256=[iterations=8192,password=secret]",
    f"{OF_USER} --alter --add-config SCRAM-SHA-512=[password=secret],producer_byte_rate=1024",
    f"{OF_USER} --describe",
    f"{CONFIGS} {AT} --describe --entity-type users",
    f"{OF_USER} --alter --add-config SCRAM-SHA-256=[iterations=5,password=secret]",
    f"{OF_USER} --alter --add-config SCRAM-SHA-256=[iterations=8192]",
    f"{OF_USER} --alter --add-config SCRAM-SHA-1=[password=secret]",
    f"{OF_USER} --alter --delete-config SCRAM-SHA-256,producer_byte_rate",
    f"{OF_USER} --alter --delete-config SCRAM-SHA-256",
    f"{OF_USER} --describe",
    f"{OF_USER} --alter --delete-config SCRAM-SHA-512",
    f"{OF_USER} --describe",
    f"{CONFIGS} {AT} --alter --entity-type ips --entity-name 10.0.0.7"
    " --add-config connection_creation_rate=0",
    *(f"{CONFIGS} {AT} --alter --entity-type {of} --add-config {what}" for of, what in QUOTAS.items()),
    *(f"{CONFIGS} {AT} --describe --entity-type {of}" for of in (*QUOTAS, *MANY)),
    *(
        f"{CONFIGS} {AT} --alter --entity-type {of} --delete-config {what.partition('=')[0]}"
        for of, what in QUOTAS.items()
    ),
    f"{OF_USER} --alter --delete-config consumer_byte_rate",
    *(f"{CONFIGS} {AT} --describe --entity-type {of}" for of in MANY),
    f"{QUORUM} {AT} describe --status",
    f"{QUORUM} {AT} remove-controller --controller-id 3 --controller-directory-id AAAAAAAAAAAAAAAAAAAATQ",
    f"{FEATURES} {AT} downgrade --feature transaction.version=1 --dry-run",
    f"{FEATURES} {AT} upgrade --feature transaction.version=9",
    f"{FEATURES} {AT} downgrade --feature transaction.version=0",
    f"{FEATURES} {AT} upgrade --feature transaction.version=2",
    f"{CLUSTER} unregister {AT} --id 7",
    *(
        f"{OFFSETS} {AT} --topic toolbox --time {time_}"
        for time_ in ("latest", "earliest", "max-timestamp", "-4", "-5", "5")
    ),
    f"{OFFSETS} {AT} --topic-partitions toolbox:1-3",
    f"{OFFSETS} {AT} --topic toolbox9",
    f"{LOG_DIRS} {AT} --describe --topic-list toolbox2",
    f"{LOG_DIRS} {AT} --describe --topic-list toolbox9",
    f"{LOG_DIRS} {AT} --describe --broker-list 1,2",
    f"{TOPICS} {AT} --delete --topic toolbox2",
    f"{TOPICS} {AT} --delete --topic toolbox2",
    f"{TOPICS} {AT} --delete --topic toolbox9 --if-exists",
    f"{TOPICS} {AT} --list --topic toolbox.*",
]

# Each server's own settings, and those that docs/differences.md calls D-elr, D-listener-configs and
# D-assignment-interval.
OWN_CONFIGS = [*PER_SERVER, *READ_ONLY_HERE, *OF_GROUPS, "consumer.assignment.interval.ms"]
OWN = re.compile(rf"^({'|'.join(map(re.escape, OWN_CONFIGS))})=")
MEANS_NOTHING = [
    (re.compile(r"(?<=Configs: )min\.insync\.replicas=1,?"), ""),
    (re.compile(r"TopicId: \S+"), "TopicId: <id>"),
    (re.compile(r'("logDir":)"[^"]+"'), r'\1"<directory>"'),
    (re.compile(r"^(ClusterId|LeaderEpoch|HighWatermark|CurrentVoters): .*$", re.MULTILINE), r"\1"),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"^\s*at .*$|^\s*\.\.\. \d+ more$", re.MULTILINE), ""),
]


def _plain(text: str) -> list[str]:
    """The lines; sorted where they come from a hash map."""
    for pattern, instead in MEANS_NOTHING:
        text = pattern.sub(instead, text)
    lines = (line.strip() for line in text.splitlines())
    return sorted(line for line in lines if line and not OWN.match(line))


@pytest.fixture(scope="module")
def printed(
    pair_named: Callable[[str], Pair], class_path: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[int, tuple[list[str], list[str]]]]:
    """What each command, by its number, printed about Apache Kafka and about kshim.

    Apache Kafka reports a change a moment after it was made. So commands that only read are repeated until
    both agree, or patience runs out.
    """
    pair = pair_named("plain")
    tools = Tools(class_path)
    impatient = tmp_path_factory.mktemp("tools") / "impatient.properties"
    impatient.write_text(IMPATIENT)

    def run(command: str, server: Server) -> list[str]:
        words = shlex.split(command.replace("SERVER", server.bootstrap).replace("IMPATIENT", str(impatient)))
        done = tools.run(*words)
        return [f"exit status {done.status}", *_plain(done.text)]

    found: dict[int, tuple[list[str], list[str]]] = {}
    try:
        for number, command in enumerate(COMMANDS):
            kshim, apache_kafka = run(command, pair.kshim), run(command, pair.apache_kafka)
            deadline = time.monotonic() + PATIENCE_S
            looks = not re.search("--(create|alter|delete) ", command)
            while looks and apache_kafka != kshim and time.monotonic() < deadline:
                apache_kafka = run(command, pair.apache_kafka)
            found[number] = apache_kafka, kshim
        yield found
    finally:
        tools.close()


def _name(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    tool, _, options = value.partition(f" {AT} ")
    return f"{tool.rpartition('.')[2]} {options}"


@pytest.mark.parametrize(("number", "command"), list(enumerate(COMMANDS)), ids=_name)
def test_tools_print_the_same(
    number: int, command: str, printed: Mapping[int, tuple[list[str], list[str]]]
) -> None:
    apache_kafka, kshim = printed[number]
    assert kshim == apache_kafka
