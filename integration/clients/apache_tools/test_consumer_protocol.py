"""Apache's tools with group.protocol=consumer: VerifiableConsumer is a member, ConsumerGroupCommand asks."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.apache_kafka.tools import CONSUMER_GROUPS, Printed, Tools
from integration.java.tool import Tool
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server

PARTITIONS = 6
RECORDS = 60
SETTLED_S = 60


class Group:
    """Members of one group and topic, both with the same name."""

    def __init__(self, broker: Server, name: str, class_path: str, tools: Tools, directory: Path) -> None:
        self.broker, self.name = broker, name
        self._class_path, self._tools, self._directory = class_path, tools, directory
        self.started: list[Tool] = []

    def member(self) -> Tool:
        options = ("--topic", self.name, "--group-id", self.name, "--group-protocol", "consumer")
        return self._start("VerifiableConsumer", *options, "--reset-policy", "earliest")

    def produce(self, records: int) -> None:
        """Send records, and wait until they are acknowledged."""
        producer = self._start("VerifiableProducer", "--topic", self.name, "--max-messages", str(records))
        wait_until(lambda: producer.facts("shutdown_complete"), SETTLED_S, producer.report)
        assert len(producer.facts("producer_send_success")) == records

    def command(self, *options: str) -> Printed:
        """The output of ConsumerGroupCommand."""
        return self._tools.run(CONSUMER_GROUPS, "--bootstrap-server", self.broker.bootstrap, *options)

    def of_group(self, *options: str) -> str:
        return self.command("--group", self.name, *options).text

    def _start(self, name: str, *options: str) -> Tool:
        log_path = self._directory / f"{len(self.started)}.log"
        connect = ("--bootstrap-server", self.broker.bootstrap)
        self.started.append(Tool(self._class_path, name, (*connect, *options), log_path))
        return self.started[-1]


@pytest.fixture(scope="module")
def tools(class_path: str) -> Iterator[Tools]:
    with contextlib.closing(Tools(class_path)) as tools:
        yield tools


@pytest.fixture
def group(broker: Server, topic: str, class_path: str, tools: Tools, tmp_path: Path) -> Iterator[Group]:
    with contextlib.closing(Admin(broker.bootstrap)) as admin:
        admin.create_topic(topic, PARTITIONS)
    found = Group(broker, topic, class_path, tools, tmp_path)
    yield found
    for each in found.started:
        each.end()


def owned(member: Tool) -> int:
    """The number of partitions that a member's listener was given, without those that were taken away."""
    given, taken = member.facts("partitions_assigned"), member.facts("partitions_revoked")
    return sum(len(fact["partitions"]) for fact in given) - sum(len(fact["partitions"]) for fact in taken)


def wait_for(expected: list[int], *members: Tool) -> None:
    wait_until(
        lambda: sorted(map(owned, members)) == expected,
        SETTLED_S,
        lambda: "\n".join(each.report() for each in members),
    )


def consumed(*members: Tool) -> int:
    return sum(fact["count"] for each in members for fact in each.facts("records_consumed"))


def test_members_come_and_go(group: Group) -> None:
    first = group.member()
    wait_for([PARTITIONS], first)
    second = group.member()
    wait_for([3, 3], first, second)
    group.produce(RECORDS)
    wait_until(lambda: consumed(first, second) == RECORDS, SETTLED_S, first.report)
    second.kill()
    wait_for([PARTITIONS], first)
    third = group.member()
    wait_for([3, 3], first, third)
    third.stop(SETTLED_S)
    wait_for([PARTITIONS], first)
    group.produce(RECORDS)
    wait_until(lambda: consumed(first, second, third) == 2 * RECORDS, SETTLED_S, first.report)


def test_a_group_is_shown(group: Group) -> None:
    group.produce(RECORDS)
    member = group.member()
    wait_for([PARTITIONS], member)
    wait_until(lambda: consumed(member) == RECORDS, SETTLED_S, member.report)
    wait_until(lambda: set(_lags(group)) == {0}, SETTLED_S, lambda: group.of_group("--describe"))
    assert _words(group.of_group("--describe", "--state"))[-1][-2:] == ["Stable", "1"]
    members = _words(group.of_group("--describe", "--members", "--verbose"))
    title, (described,) = members[0], members[1:]
    assert described[title.index("CURRENT-EPOCH")] == described[title.index("TARGET-EPOCH")]
    assert described[title.index("#PARTITIONS")] == str(PARTITIONS)
    listed = _words(group.command("--list", "--type", "consumer", "--state").text)
    assert [group.name, "Consumer", "Stable"] in [line[:1] + line[-2:] for line in listed]


def test_offsets_are_moved_and_the_group_is_deleted(group: Group) -> None:
    group.produce(RECORDS)
    member = group.member()
    wait_until(lambda: consumed(member) == RECORDS, SETTLED_S, member.report)
    to_earliest = ("--reset-offsets", "--all-topics", "--to-earliest", "--execute")
    assert "inactive, but the current state is Stable" in group.of_group(*to_earliest)
    member.stop(SETTLED_S)
    assert {line[-1] for line in _words(group.of_group(*to_earliest))[1:]} == {"0"}
    again = group.member()
    wait_until(lambda: consumed(again) == RECORDS, SETTLED_S, again.report)
    assert "GroupNotEmptyException" in group.of_group("--delete")
    again.stop(SETTLED_S)
    assert "was successful" in group.of_group("--delete")
    assert group.name not in group.command("--list").text


def _lags(group: Group) -> list[int]:
    """The lag of each partition that has an offset."""
    title, *lines = _words(group.of_group("--describe")) or [[]]
    return [int(line[title.index("LAG")]) for line in lines if line[title.index("LAG")].isdecimal()]


def _words(printed: str) -> list[list[str]]:
    """The words of each line that is not empty, without warnings."""
    return [line.split() for line in printed.splitlines() if line.strip() and not re.search("WARN", line)]
