"""Apache Kafka and kshim side by side, with the same settings and topics."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from integration import apache_kafka
from integration.differential.history import OTHER_TOPIC, TOPIC
from integration.differential.player import Target
from integration.server import Server
from schemas.api_key import ApiKey
from schemas.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.describe_groups import DescribeGroupsRequest
from schemas.error_code import ErrorCode
from schemas.find_coordinator import FindCoordinatorRequest
from schemas.header import RequestHeader
from schemas.registry import decode_response, encode_request

COMMON = {"group.min.session.timeout.ms": "300", "auto.create.topics.enable": "false"}
PAIRS: Mapping[str, Mapping[str, str]] = {
    "plain": {"group.initial.rebalance.delay.ms": "0"},
    "delayed": {"group.initial.rebalance.delay.ms": "1000"},
    "small": {"group.initial.rebalance.delay.ms": "0", "group.max.size": "2"},
}
"""The settings of both servers, by the name that a history gives."""
MANY_GROUPS = tuple(f"any-{number}" for number in range(500))
"""Enough that every partition of __consumer_offsets has some."""
READY_TIMEOUT_S = 60


@dataclass(frozen=True)
class Pair:
    apache_kafka: Server
    kshim: Server
    targets: tuple[Target, Target]

    def stop(self) -> None:
        for server in (self.apache_kafka, self.kshim):
            if server.running:
                server.stop()

    def report(self) -> str:
        return f"{self.apache_kafka.report()}\n{self.kshim.report()}"


def start(name: str, directory: Path) -> Pair:
    """Start both, with TOPIC and OTHER_TOPIC; their coordinators have loaded all there is."""
    settings = {**COMMON, **PAIRS[name]}
    options = list(
        itertools.chain.from_iterable(("--set", f"{key}={value}") for key, value in settings.items())
    )
    directory.mkdir()
    servers = (
        Server(directory / "apache-kafka", options, command=apache_kafka.COMMAND),
        Server(directory / "kshim", options),
    )
    try:
        with ThreadPoolExecutor() as threads:
            list(threads.map(Server.start, servers))
        targets = tuple(asyncio.run(_prepare(server)) for server in servers)
    except BaseException:
        for server in servers:
            if server.running:
                server.kill()
        raise
    return Pair(*servers, targets=(targets[0], targets[1]))


async def _prepare(server: Server) -> Target:
    reader, writer = await asyncio.open_connection(server.host, server.port)

    async def ask(api_key: ApiKey, version: int, request: Any) -> Any:
        header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id="test")
        frame = encode_request(header, request)
        writer.write(len(frame).to_bytes(4) + frame)
        size = int.from_bytes(await reader.readexactly(4))
        return decode_response(api_key, version, await reader.readexactly(size))[1]

    async def all_loaded() -> None:
        while True:
            await ask(
                ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="any")
            )  # makes the offsets' topic
            answer = await ask(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=MANY_GROUPS))
            if all(group.error_code == ErrorCode.NONE for group in answer.groups):
                return
            await asyncio.sleep(0.05)

    topics = tuple(
        CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in (TOPIC, OTHER_TOPIC)
    )
    made = await ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=10_000))
    topic_ids: dict[str, UUID] = {}
    for topic in made.topics:
        assert topic.error_code == ErrorCode.NONE, topic
        topic_ids[topic.name] = topic.topic_id
    await asyncio.wait_for(all_loaded(), READY_TIMEOUT_S)
    writer.close()
    return Target(server.host, server.port, topic_ids)
