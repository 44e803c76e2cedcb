"""AlterReplicaLogDirs: a replica is where it is. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kshim.answering import Broker
from kshim.api.alter_replica_log_dirs import alter_replica_log_dirs
from schemas.error_code import ErrorCode
from schemas.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.api.harness import ask, create, new_broker

Moves = tuple[tuple[str, str, tuple[int, ...]], ...]
OK, NO_DIR, UNKNOWN = ErrorCode.NONE, ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    broker = new_broker(log_dirs=str(tmp_path))
    create(broker, "t", 2)
    return broker


def move(broker: Broker, *moves: tuple[str, str, tuple[int, ...]]) -> dict[tuple[str, int], int]:
    """The error of each replica. moves: path, topic and partitions; "HERE" in a path is the directory."""
    here = broker.config.log_dir
    dirs = tuple(
        AlterReplicaLogDir(
            path=path.replace("HERE", here), topics=(AlterReplicaLogDirTopic(name=name, partitions=indexes),)
        )
        for path, name, indexes in moves
    )
    response = ask(alter_replica_log_dirs, broker, AlterReplicaLogDirsRequest(dirs=dirs), 2)
    found = [(it.topic_name, each) for it in response.results for each in it.partitions]
    errors = {(name, each.partition_index): each.error_code for name, each in found}
    assert len(errors) == len(found)
    return errors


@pytest.mark.parametrize(
    ("moves", "errors"),
    [
        ((), {}),
        ((("HERE", "t", ()),), {}),
        ((("HERE", "t", (0, 1, 0)),), {("t", 0): OK, ("t", 1): OK}),
        ((("HERE", "t", (2, -1)),), {("t", 2): UNKNOWN, ("t", -1): UNKNOWN}),
        ((("HERE", "nope", (0,)),), {("nope", 0): UNKNOWN}),
        ((("/x", "t", (0,)), ("/x", "nope", (0,))), {("t", 0): NO_DIR, ("nope", 0): NO_DIR}),
        ((("HERE/", "t", (0,)),), {("t", 0): NO_DIR}),
        ((("/x", "t", (0,)), ("HERE", "t", (0,))), {("t", 0): OK}),
        ((("HERE", "t", (0,)), ("/x", "t", (0,))), {("t", 0): NO_DIR}),
    ],
)
def test_the_last_directory_of_each_replica_counts(
    broker: Broker, moves: Moves, errors: dict[tuple[str, int], int]
) -> None:
    assert move(broker, *moves) == errors


def test_a_topic_whose_directory_would_have_too_long_a_name(broker: Broker) -> None:
    longest = "x" * 213
    create(broker, longest, 11)
    create(broker, longest + "x")
    assert move(
        broker, ("HERE", longest, (9, 10)), ("HERE", longest + "x", (0,)), ("/x", "y" * 300, (0,))
    ) == {
        (longest, 9): OK,
        (longest, 10): ErrorCode.INVALID_TOPIC_EXCEPTION,
        (longest + "x", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
        ("y" * 300, 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_replica_of_another_broker() -> None:
    first = new_broker(node_id=1, brokers=2)
    create(first, "t")
    (partition,) = first.cluster.topics["t"].partitions
    for node_id in (1, 2):
        error = OK if node_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert move(replace(first, node_id=node_id), ("HERE", "t", (0,))) == {("t", 0): error}


def test_in_memory() -> None:
    broker = new_broker(log_dirs=":memory:")
    create(broker, "t")
    assert move(broker, ("HERE", "t", (0,))) == {("t", 0): OK}
