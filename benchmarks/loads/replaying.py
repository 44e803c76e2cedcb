"""Restart of a server with many commits in its log: until it listens, until it serves all groups."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.generator import Load
from benchmarks.processor import Measured, cpu_s, memory_mib
from benchmarks.raw import NOT_READY, Connection
from benchmarks.servers import Settings, Side
from kshim.testing.wire import framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from schemas.registry import decode_response

GROUPS, PARTITIONS = 200, 50
TOPIC = "benchmark"
COMMIT_VERSION, FETCH_VERSION = 8, 5
IN_FLIGHT = 20
TIMEOUT_S = 300


def group_id(number: int) -> str:
    return f"benchmark-{number % GROUPS}"


def commits(records: int) -> Iterator[OffsetCommitRequest]:
    """The groups commit in turn, each for all partitions."""
    for number in range(records // PARTITIONS):
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=number * 10 + index)
            for index in range(PARTITIONS)
        )
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
        yield OffsetCommitRequest(
            group_id=group_id(number), generation_id_or_member_epoch=-1, topics=(topic,)
        )


def commit(bootstrap: str, records: int) -> None:
    connection = Connection(bootstrap)
    connection.new_topic(PARTITIONS, TOPIC)
    for number in range(GROUPS):
        connection.find_coordinator(group_id(number))
        wait_until_served(connection, [number])
    waiting = 0
    for request in commits(records):
        connection.request(COMMIT_VERSION, request)
        waiting += 1
        while waiting >= IN_FLIGHT:
            connection.response(COMMIT_VERSION, ApiKey.OFFSET_COMMIT)
            waiting -= 1
    for _ in range(waiting):
        connection.response(COMMIT_VERSION, ApiKey.OFFSET_COMMIT)


def wait_until_served(connection: Connection, numbers: list[int]) -> None:
    """Ask for the groups' offsets until all are answered."""
    topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,))
    deadline = time.monotonic() + TIMEOUT_S
    while numbers:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(numbers)} groups are not served after {TIMEOUT_S} s")
        for number in numbers:
            asked = OffsetFetchRequest(group_id=group_id(number), topics=(topic,))
            connection.sendall(framed(FETCH_VERSION, asked))
        answers = [
            decode_response(ApiKey.OFFSET_FETCH, FETCH_VERSION, connection.frame())[1] for _ in numbers
        ]
        for answer in answers:
            if answer.error_code not in {*NOT_READY, ErrorCode.NONE}:
                raise RuntimeError(f"the broker answered {answer}")
        numbers = [
            number for number, answer in zip(numbers, answers, strict=True) if answer.error_code in NOT_READY
        ]


def load(side: Side, directory: Path, settings: Settings, arguments: Load) -> Measured:
    """A server whose log has so many `commits`, which are made in the first round."""
    data_dir = directory / "commits"
    if not data_dir.exists():
        with side.serving(data_dir, settings) as server:
            commit(server.target.bootstrap, arguments["commits"])
    with side.serving(data_dir, settings, quick_start=True) as server:
        wait_until_served(Connection(server.target.bootstrap), list(range(GROUPS)))
        served_s = time.perf_counter() - server.began_at
        used_s = cpu_s(server.target.pid)
        peak_mib = memory_mib(server.target.pid, "VmHWM")
    figures = {"s to serve all groups": served_s, "s to listen": server.started_s}
    return Measured(figures, arguments["commits"], used_s, peak_mib=peak_mib)
