"""Apache's command-line tools print the same on three brokers as they did on three of Apache Kafka 4.2."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.java.tool import run_to_end
from integration.support.server import Server

pytestmark = pytest.mark.kshim_only("`kshim cluster` steers kshim")

ELECT = "LeaderElectionCommand"
OFFSETS = "GetOffsetShell"
REASSIGN = "reassign.ReassignPartitionsCommand"
TOPICS = "TopicCommand"

MADE = """
0 Leader: 1 Replicas: 1,2,3 Isr: 1,2,3 Elr: LastKnownElr:
1 Leader: 2 Replicas: 2,3,1 Isr: 2,3,1 Elr: LastKnownElr:
2 Leader: 3 Replicas: 3 Isr: 3 Elr: LastKnownElr:
"""
REASSIGNED = """
0 Leader: 1 Replicas: 3,2,1 Isr: 1,2,3 Elr: LastKnownElr:
1 Leader: 2 Replicas: 2,3 Isr: 2,3 Elr: LastKnownElr:
2 Leader: 3 Replicas: 3 Isr: 3 Elr: LastKnownElr:
"""
WITHOUT_3 = """
0 Leader: 2 Replicas: 3,2,1 Isr: 1,2 Elr: LastKnownElr:
1 Leader: 2 Replicas: 2,3 Isr: 2 Elr: LastKnownElr:
2 Leader: none Replicas: 3 Isr: Elr: 3 LastKnownElr: 3
"""
WITH_3_AGAIN = """
0 Leader: 2 Replicas: 3,2,1 Isr: 1,2,3 Elr: LastKnownElr:
1 Leader: 2 Replicas: 2,3 Isr: 2,3 Elr: LastKnownElr:
2 Leader: 3 Replicas: 3 Isr: 3 Elr: LastKnownElr:
"""


class Asking:
    """Runs the tools on one cluster and one topic."""

    def __init__(self, class_path: str, server: Server, topic: str, tmp_path: Path) -> None:
        self._class_path, self._bootstrap, self._topic = class_path, server.bootstrap, topic
        self._file = tmp_path / "partitions.json"

    def run(self, tool: str, *arguments: str) -> tuple[int, str]:
        """Returns the exit status and what was printed."""
        status, text = run_to_end(self._class_path, tool, "--bootstrap-server", self._bootstrap, *arguments)
        return status, text.replace(self._topic, "TOPIC")

    def create(self, *arguments: str) -> tuple[int, str]:
        return self.run(TOPICS, "--create", "--topic", self._topic, *arguments)

    def described(self, *arguments: str) -> str:
        """A line for each partition, with its white space normalised."""
        _, text = self.run(TOPICS, "--describe", "--topic", self._topic, *arguments)
        found = re.findall(r"Topic: TOPIC\s+Partition: (.*)", text)
        return "\n".join(["", *(" ".join(line.split()) for line in found), ""])

    def elect(self, *arguments: str) -> tuple[int, str]:
        status, text = self.run(ELECT, "--election-type", *arguments)
        return status, next(iter(text.splitlines()), "")

    def reassign(self, action: str, **replicas: list[int]) -> tuple[int, str]:
        """replicas: the replicas of each partition, as p0=[1, 2]."""
        partitions = [
            {"topic": self._topic, "partition": int(index.removeprefix("p")), "replicas": nodes}
            for index, nodes in replicas.items()
        ]
        self._file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return self.run(REASSIGN, action, "--reassignment-json-file", str(self._file))


@pytest.fixture
def server(new_server: Callable[..., Server]) -> Server:
    return new_server("--brokers", "3").start()


@pytest.fixture
def asking(class_path: str, server: Server, topic: str, tmp_path: Path) -> Asking:
    return Asking(class_path, server, topic, tmp_path)


def test_three_brokers_as_tools_see_them(server: Server, asking: Asking, topic: str) -> None:
    too_many = "cannot be reached because only 3 broker(s) are registered"
    assert too_many in asking.create("--partitions", "1", "--replication-factor", "4")[1]
    assert asking.create("--replica-assignment", "1:2:3,2:3:1,3:1:2") == (0, "Created topic TOPIC.\n")
    asking.reassign("--execute", p2=[3])
    assert asking.described() == MADE
    assert asking.run(OFFSETS, "--topic", topic) == (0, "TOPIC:0:0\nTOPIC:1:0\nTOPIC:2:0\n")

    done, text = asking.reassign("--execute", p0=[3, 2, 1], p1=[2, 3])
    assert (done, text.splitlines()[-1]) == (
        0,
        "Successfully started partition reassignments for TOPIC-0,TOPIC-1",
    )
    done, text = asking.reassign("--verify", p0=[3, 2, 1], p1=[2, 3])
    assert (done, text.splitlines()[:3]) == (
        0,
        [
            "Status of partition reassignment:",
            "Reassignment of partition TOPIC-0 is completed.",
            "Reassignment of partition TOPIC-1 is completed.",
        ],
    )
    assert asking.described() == REASSIGNED
    assert asking.run(REASSIGN, "--list") == (0, "No partition reassignments found.\n")

    partition = ("--topic", topic, "--partition")
    elected = "Successfully completed leader election (PREFERRED) for partitions TOPIC-0"
    assert asking.elect("preferred", *partition, "0") == (0, elected)
    assert asking.elect("preferred", "--all-topic-partitions") == (0, "")
    valid = "Valid replica already elected for partitions TOPIC-1"
    assert asking.elect("unclean", *partition, "1") == (0, valid)

    server.steer("stop-broker", 3)
    assert asking.described() == WITHOUT_3
    assert asking.described("--unavailable-partitions").split() == WITHOUT_3.splitlines()[3].split()
    assert asking.described("--under-replicated-partitions") == WITHOUT_3
    _, text = asking.run(TOPICS, "--create", "--topic", "other", "--replica-assignment", "3")
    assert "for partition 0 are fenced or in controlled shutdown." in text
    status, text = asking.elect("preferred", *partition, "0")
    assert (status, text.rpartition(": ")[2]) == (1, "The preferred leader was not available.")
    status, text = asking.reassign("--execute", p0=[3, 1])
    assert (status, text.splitlines()[0]) == (1, "Error: Unknown broker id 3")

    server.steer("start-broker", 3)
    assert asking.described() == WITH_3_AGAIN
    assert asking.elect("preferred", *partition, "0") == (0, elected)
