"""One run of `drive.js` against each broker, and what its answers must be."""

from __future__ import annotations

import json
import os
import re
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from integration.clients.confluent.javascript.modules import fetch_modules
from integration.support.server import Server
from integration.support.toolchain import or_skip

DRIVE = Path(__file__).with_name("drive.js")
RUN_TIMEOUT_S = 120
PARTITIONS = range(4)
TOPIC_OPERATIONS = [3, 4, 5, 6, 7, 8, 10, 11]  # READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, …_CONFIGS
NON_EMPTY_GROUP, OFFSET_OUT_OF_RANGE = 68, 1
STABLE, CLASSIC = 3, 2


@pytest.fixture(scope="session")
def modules() -> Path:
    with or_skip("Confluent's JavaScript client"):
        return fetch_modules()


@pytest.fixture(scope="session")
def prefix() -> str:
    return f"javascript-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def answers(modules: Path, broker: Server, prefix: str) -> Mapping[str, Any]:
    """`drive.js`'s output, by the name of the step."""
    done = subprocess.run(
        ["node", str(DRIVE), broker.bootstrap, prefix],
        env={**os.environ, "NODE_PATH": str(modules)},
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{broker.report()}"
    return {line["step"]: line["result"] for line in map(json.loads, done.stdout.splitlines())}


def by_partition(offsets: list[dict[str, Any]]) -> dict[int, str]:
    return {each["partition"]: each["offset"] for each in offsets}


def test_every_admin_call_is_tried(answers: Mapping[str, Any]) -> None:
    called = set(re.findall(r"\badmin\.(\w+)\(", DRIVE.read_text()))
    assert set(answers["methods"]) - called == set(), "not tried"


def test_topics(answers: Mapping[str, Any], broker: Server, prefix: str) -> None:
    assert (answers["createTopics"], answers["createTopics again"]) == (True, False)
    found = answers["fetchTopicMetadata"]
    assert (found["name"], found["isInternal"]) == (f"{prefix}-topic", False)
    assert found["authorizedOperations"] == TOPIC_OPERATIONS
    node = {"id": 1, "host": broker.host, "port": broker.port}
    assert [(each["partitionId"], each["leaderNode"], each["replicas"]) for each in found["partitions"]] == [
        (index, node, [1]) for index in PARTITIONS
    ]
    assert {f"{prefix}-topic", f"{prefix}-target"} <= {*answers["fetchTopicMetadata of all"]}
    assert answers["fetchTopicMetadata of none"] == ["ERR_UNKNOWN_TOPIC_OR_PART"]
    assert answers["deleteTopics"] == [None, None]


def test_two_members_share_and_read_all(answers: Mapping[str, Any], prefix: str) -> None:
    for step, offset in (("send", "0"), ("sendBatch", "1")):
        told = answers[step]
        assert {each["partition"]: each["baseOffset"] for each in told} == dict.fromkeys(PARTITIONS, offset)
        assert {each["errorCode"] for each in told} == {0}
    first, second = answers["assignment"]
    assert sorted(first + second) == list(PARTITIONS)
    group = answers["describeGroups"]
    assert (group["groupId"], group["state"], group["protocolType"]) == (
        f"{prefix}-group",
        STABLE,
        "consumer",
    )
    owned = {
        member["clientId"]: sorted(each["partition"] for each in member["assignment"]["topicPartitions"])
        for member in group["members"]
    }
    assert owned == {"first": first, "second": second}
    received = {(each["partition"], each["offset"]): each for each in answers["received"]}
    assert received == {
        (partition, offset): {
            "topic": f"{prefix}-topic",
            "partition": partition,
            "offset": offset,
            "key": f"key {partition}",
            "value": f"value {partition}",
            "timestamp": str(1_000_000 + partition),
            "origin": "drive.js",
        }
        for partition in PARTITIONS
        for offset in ("0", "1")
    }


def test_committed_offsets(answers: Mapping[str, Any], prefix: str) -> None:
    assert {(each["offset"], each["metadata"]) for each in answers["committed"]} == {("2", "noted")}
    for step in ("fetchOffsets", "fetchOffsets of all"):
        (topic,) = answers[step]
        assert topic["topic"] == f"{prefix}-topic"
        assert by_partition(topic["partitions"]) == dict.fromkeys(PARTITIONS, "2")
        assert {each["metadata"] for each in topic["partitions"]} == {"noted"}


def test_groups(answers: Mapping[str, Any], prefix: str) -> None:
    (listed,) = answers["listGroups"]
    assert (listed["groupId"], listed["state"], listed["type"]) == (f"{prefix}-group", STABLE, CLASSIC)
    assert answers["deleteGroups that live"] == [NON_EMPTY_GROUP]
    assert answers["deleteGroups"] == [[f"{prefix}-group", 0]]


def test_transactions(answers: Mapping[str, Any]) -> None:
    assert answers["read committed"] == ["committed"]
    (topic,) = answers["fetchOffsets after the transaction"]
    assert by_partition(topic["partitions"]) == {0: "1", 1: "2", 2: "2", 3: "2"}


def test_offsets_of_a_topic(answers: Mapping[str, Any], prefix: str) -> None:
    assert {(each["low"], each["high"]) for each in answers["fetchTopicOffsets"]} == {("0", "2")}
    later = answers["fetchTopicOffsetsByTimestamp"]
    assert by_partition(later) == {0: "2", 1: "2", 2: "0", 3: "0"}
    assert answers["deleteTopicRecords"] == [{"topic": f"{prefix}-topic", "partition": 0, "lowWatermark": 1}]
    assert answers["deleteTopicRecords beyond the end"] == [OFFSET_OUT_OF_RANGE]
