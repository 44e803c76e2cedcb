"""Apache Kafka and kshim side by side, with the same settings and topics."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from integration import apache_kafka
from integration.differential.playing.asking import Address, Connection
from integration.differential.playing.player import Target
from integration.differential.playing.settling import MARKED
from integration.differential.words.history import OTHER_TOPIC, TOPIC
from integration.support.server import COMMAND, Server, set_options
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest

DELAY_MS = "group.initial.rebalance.delay.ms"
COMMON = {
    "group.min.session.timeout.ms": "300",
    "auto.create.topics.enable": "false",
    # on a busy machine Apache Kafka's broker is late, and would have new leaders elected
    "broker.session.timeout.ms": "60000",
}
FOR_GOOD = {
    # no record of a history is deleted or compacted while the history reads it
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "3600000",
    # timestamps that are far apart start no new segment: a Fetch would not read beyond one
    "log.roll.ms": str(2**63 - 1),
}
PAIRS: Mapping[str, Mapping[str, str]] = {
    "plain": {**FOR_GOOD, DELAY_MS: "0"},
    "delayed": {**FOR_GOOD, DELAY_MS: "3000"},
    "small": {**FOR_GOOD, DELAY_MS: "0", "group.max.size": "2"},
    "members": {DELAY_MS: "0", "group.consumer.assignment.interval.ms": "0"},
    "alone": {DELAY_MS: "0"},  # for tools, which list all groups and all configs that are set
}
"""The settings of both servers, by the name that a history uses for the pair."""
MANY = tuple(f"any-{number}" for number in range(500))
"""Enough ids that each partition of __consumer_offsets and of __transaction_state has some."""
READY_TIMEOUT_S = 60


@dataclass(frozen=True)
class Program:
    """How a server of a pair is started."""

    name: str
    command: Sequence[str] = tuple(COMMAND)
    options: Sequence[str] = ()


BOTH = (Program("apache-kafka", apache_kafka.COMMAND), Program("kshim"))


@dataclass(frozen=True)
class Pair:
    apache_kafka: Server
    kshim: Server
    targets: tuple[Target, Target]

    def stop(self) -> None:
        """Only kshim has to stop cleanly."""
        if self.apache_kafka.running:
            self.apache_kafka.kill()
        if self.kshim.running:
            self.kshim.stop()

    def report(self) -> str:
        return f"{self.apache_kafka.report()}\n{self.kshim.report()}"


def start(name: str, directory: Path, programs: tuple[Program, Program] = BOTH) -> Pair:
    """Start both servers with TOPIC and OTHER_TOPIC, and wait until their coordinators are loaded."""
    settings = {**COMMON, **PAIRS[name]}
    options = set_options(settings)
    directory.mkdir()
    one, other = (
        Server(directory / each.name, [*each.options, *options], command=each.command) for each in programs
    )
    servers = one, other
    try:
        with ThreadPoolExecutor() as threads:
            targets = threads.map(_prepared, servers, itertools.repeat(int(settings[DELAY_MS])))
            theirs, ours = targets
    except BaseException:
        for server in servers:
            if server.running:
                server.kill()
        raise
    newest = {key: min(theirs.newest[key], ours.newest[key]) for key in theirs.newest.keys() & ours.newest}
    return Pair(*servers, targets=(replace(theirs, newest=newest), replace(ours, newest=newest)))


def create_topic(address: Address, name: str, partitions: int) -> UUID:
    """Create a topic and return its id."""

    async def create() -> UUID:
        connection = await Connection.open(address)
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
        (made,) = (await connection.ask(7, request)).topics
        assert made.error_code == ErrorCode.NONE, made
        connection.close()
        return UUID(str(made.topic_id))

    return asyncio.run(create())


async def newest_versions(address: Address) -> dict[int, int]:
    """The newest version of each API that a server announces."""
    connection = await Connection.open(address)
    announced = await connection.ask(0, ApiVersionsRequest())
    connection.close()
    return {each.api_key: each.max_version for each in announced.api_keys}


async def wait_loaded(address: Address) -> None:
    """Wait until all group and transaction coordinators answer; this creates their topics."""
    connection = await Connection.open(address)
    while True:
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key="any", key_type=key_type)
            await connection.ask(1, request)
        groups = await connection.ask(0, DescribeGroupsRequest(groups=MANY))
        transactions = await connection.ask(0, DescribeTransactionsRequest(transactional_ids=MANY))
        told = {*(each.error_code for each in groups.groups)}
        told |= {each.error_code for each in transactions.transaction_states}
        # take producer id 0, so that no client gets it: answers also use it for "none"
        anybody = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        told.add((await connection.ask(0, anybody)).error_code)
        if told <= {ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}:
            connection.close()
            return
        await asyncio.sleep(0.05)


def _prepared(server: Server, delay_ms: int) -> Target:
    server.start()
    topic_ids = {name: create_topic(server, name, 2) for name in (TOPIC, OTHER_TOPIC)}
    create_topic(server, MARKED, 1)
    asyncio.run(asyncio.wait_for(wait_loaded(server), READY_TIMEOUT_S))
    newest = asyncio.run(newest_versions(server))
    return Target(server.host, server.port, topic_ids, delay_ms, newest)
