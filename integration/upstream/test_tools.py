"""Apache Kafka's kafka-consumer-groups through kshim and at the upstream itself: groups of both sides."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from kafka import TopicPartition

from integration import apache_kafka
from integration.apache_kafka.tools import CONSOLE_CONSUMER, CONSUMER_GROUPS, Tools
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer, offset_and_metadata
from integration.support.server import Server, run_to_end

TOPIC = "orders"
PARTITIONS, RECORDS = 2, 10
OURS, THEIRS, NEW = "ours", "theirs", "new-protocol"


@dataclass
class Sides:
    """kshim, its upstream, and what runs the tools."""

    kafka: Server
    kshim: Server
    tools: Tools

    def run(self, server: Server, command: str) -> list[str]:
        """The output of kafka-consumer-groups, without empty lines."""
        arguments = shlex.split(f"--bootstrap-server {server.bootstrap} {command}")
        done = self.tools.run(CONSUMER_GROUPS, *arguments)
        lines = [" ".join(line.split()) for line in done.text.splitlines() if line.strip()]
        return [line.replace(server.bootstrap, "SERVER") for line in lines]

    def through(self, command: str) -> list[str]:
        return self.run(self.kshim, command)

    def directly(self, command: str) -> list[str]:
        return self.run(self.kafka, command)

    def commit(self, server: Server, group_id: str, offset: int) -> None:
        """Commit for a group in all partitions, and wait until the upstream has the offsets."""
        consumer = new_consumer(server.bootstrap, group_id=group_id)
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.commit({each: offset_and_metadata(offset) for each in partitions})
        consumer.close()
        wait_until(lambda: self.offsets(self.kafka, group_id) == [offset] * PARTITIONS, 20, "the offsets")

    def offsets(self, server: Server, group_id: str) -> list[int | None]:
        """The group's committed offsets, in the order of the partitions; None where there is none."""
        admin = Admin(server.bootstrap)
        found = admin.group_offsets(group_id)
        admin.close()
        return [found.get((TOPIC, number)) for number in range(PARTITIONS)]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Sides]:
    """Each side has a group, and the upstream one with the new protocol, too."""
    path = tmp_path_factory.mktemp("tools")
    kafka = Server(path / "kafka", command=apache_kafka.COMMAND).start()
    kshim = Server(path / "kshim", ["--upstream", kafka.bootstrap]).start()
    tools = Tools(class_path)
    sides = Sides(kafka, kshim, tools)
    admin = Admin(kafka.bootstrap)
    admin.create_topic(TOPIC, PARTITIONS)
    admin.close()
    producer = new_producer(kafka.bootstrap)
    for number in range(RECORDS):
        producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    producer.close()
    sides.commit(kshim, OURS, 1)
    sides.commit(kafka, THEIRS, 3)
    new = f"--topic {TOPIC} --group {NEW} --consumer-property group.protocol=consumer --timeout-ms 2000"
    tools.run(CONSOLE_CONSUMER, "--bootstrap-server", kafka.bootstrap, *new.split())
    yield sides
    tools.close()
    kshim.kill()
    kafka.kill()


SAME = [
    "--list",
    "--list --state",
    "--list --state Empty",
    "--list --type",
    "--list --type Consumer",
    f"--describe --group {OURS}",
    f"--describe --group {THEIRS}",
    f"--describe --group {THEIRS} --group {OURS} --state",
    f"--describe --group {THEIRS} --members --verbose",
    "--describe --group nobodys",
    "--describe --group nobodys --state",
    f"--reset-offsets --group {THEIRS} --all-topics --to-earliest --dry-run",
    f"--reset-offsets --group {THEIRS} --group {OURS} --all-topics --shift-by 1 --dry-run",
    "--delete --group nobodys",
    f"--delete-offsets --group nobodys --topic {TOPIC}",
]


@pytest.mark.parametrize("command", SAME)
def test_both_sides_print_the_same(sides: Sides, command: str) -> None:
    """All but the group that kshim's own processes are."""
    theirs = [line for line in sides.directly(command) if line.split()[0] != "__kshim"]
    assert sorted(sides.through(command)) == sorted(theirs)


@pytest.mark.few
def test_a_group_is_deleted_at_both_sides(sides: Sides) -> None:
    sides.commit(sides.kshim, "mine", 2)
    sides.commit(sides.kafka, "yours", 2)
    assert {"mine", "yours"} <= set(sides.through("--list"))
    assert sides.through("--delete --group mine --group yours") == [
        "Deletion of requested consumer groups ('mine', 'yours') was successful."
    ]
    for server in (sides.kshim, sides.kafka):
        assert not {"mine", "yours"} & set(sides.run(server, "--list"))


def test_a_group_with_members_at_the_upstream_is_described_and_stays(sides: Sides) -> None:
    consumer = new_consumer(sides.kafka.bootstrap, TOPIC, group_id="busy")
    try:
        wait_until(lambda: bool(consumer.poll(100)), 20, "records")
        for command in ("--describe --group busy --members", "--describe --group busy --state"):
            assert sides.through(command) == sides.directly(command)
        assert any("GroupNotEmptyException" in line for line in sides.through("--delete --group busy"))
        assert "busy" in sides.directly("--list")
    finally:
        consumer.close()
    sides.directly("--delete --group busy")


def run(sides: Sides, *arguments: str) -> str:
    """The output of a kshim command."""
    data_dir = sides.kshim.data_dir
    done = run_to_end(*arguments, "--data-dir", str(data_dir), cwd=data_dir)
    return done.stdout + done.stderr


def test_why_names_a_group_at_the_upstream(sides: Sides) -> None:
    assert "`kshim adopt twice` copies its offsets to kshim" not in run(sides, "why", "twice")
    consumers = [new_consumer(sides.kafka.bootstrap, TOPIC, group_id="twice")]
    try:
        wait_until(lambda: bool(consumers[0].poll(100)), 20, "records at the upstream")
        assert "group twice is Stable at the upstream, and not known here" in run(sides, "why", "twice")
        consumers.append(new_consumer(sides.kshim.bootstrap, TOPIC, group_id="twice"))
        wait_until(lambda: bool(consumers[1].poll(100)), 20, "records here")
        assert "It also has 1 member at the upstream itself: kafka-python" in run(sides, "why", "twice")
    finally:
        for consumer in consumers:
            consumer.close(autocommit=False)
    sides.through("--delete --group twice")


def test_kshim_group_moves_offsets(sides: Sides) -> None:
    """Also of a topic that no client has named since the start."""
    sides.commit(sides.kshim, "moved", 1)
    sides.kshim.kill()
    sides.kshim.restart()
    end = RECORDS // PARTITIONS
    for arguments, offset in (
        (("--to-latest",), end),
        (("--shift", "-2"), end - 2),
        (("--to-time", "2020-01-01T00:00"), 0),
        (("--to-latest", "--topic", TOPIC), end),
        (("--to-earliest", "--topic", TOPIC), 0),
    ):
        printed = run(sides, "group", "reset-offsets", "moved", *arguments).split()
        assert printed[3:] == [TOPIC, "0", str(offset), TOPIC, "1", str(offset)], printed
    run(sides, "group", "set-offsets", "moved", "--topic", TOPIC, "--partition", "1", "--offset", "3")
    assert sides.offsets(sides.kshim, "moved") == [0, 3]
    wait_until(lambda: sides.offsets(sides.kafka, "moved") == [0, 3], 10, "the offsets at the upstream")
    run(sides, "group", "delete", "moved")
    assert "moved" not in sides.directly("--list")


@pytest.mark.parametrize("side", ["kshim", "kafka"])
def test_offsets_are_deleted_at_both_sides(sides: Sides, side: str) -> None:
    sides.commit(getattr(sides, side), side, 2)
    printed = sides.through(f"--delete-offsets --group {side} --topic {TOPIC}:0")
    assert any("Successful" in line for line in printed), printed
    assert sides.offsets(sides.kshim, side) == sides.offsets(sides.kafka, side) == [None, 2]
    sides.through(f"--delete --group {side}")


def test_offsets_of_all_groups_are_reset_at_both_sides(sides: Sides) -> None:
    for server, group_id in ((sides.kshim, OURS), (sides.kafka, THEIRS)):
        sides.commit(server, group_id, 1)
    printed = sides.through("--reset-offsets --all-groups --all-topics --to-offset 4 --execute")
    for group_id in (OURS, THEIRS):
        assert [line for line in printed if line.startswith(f"{group_id} ")], printed
        assert sides.offsets(sides.kshim, group_id) == [4] * PARTITIONS
        wait_until(
            lambda group_id=group_id: sides.offsets(sides.kafka, group_id) == [4] * PARTITIONS, 10, "both"
        )
