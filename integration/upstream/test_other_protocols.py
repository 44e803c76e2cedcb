"""Share groups and streams groups, which are the upstream's, through kshim in front of two nodes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ShareConsumer
from kafka import KafkaProducer

from integration.apache_kafka.nodes import Nodes
from integration.apache_kafka.tools import CONFIGS, Tools
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_producer
from integration.support.server import Server, set_options
from integration.upstream.committer import FETCH, fetch_request, read_of
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    Topology,
)

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
PARTITIONS, RECORDS, WITHIN_S = 4, 40, 60
COMMIT, LIST = 9, 5


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("upstream"), 2).start()
    yield nodes
    nodes.kill()


@pytest.fixture(scope="module")
def kshim(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("kshim") / "data", ["--upstream", nodes.bootstrap]).start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def tools(class_path: str) -> Iterator[Tools]:
    tools = Tools(class_path)
    yield tools
    tools.close()


@pytest.fixture
def made(nodes: Nodes, topic: str) -> str:
    admin = Admin(nodes.bootstrap)
    admin.create_topic(topic, PARTITIONS)
    admin.close()
    return topic


def begin_at_the_earliest(kshim: Server, tools: Tools, group_id: str) -> None:
    arguments = f"--alter --entity-type groups --entity-name {group_id}"
    done = tools.run(
        CONFIGS,
        *("--bootstrap-server", kshim.bootstrap, *arguments.split()),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )
    assert done.status == 0, done.text


def produce(kshim: Server, topic: str) -> list[str]:
    producer: KafkaProducer = new_producer(kshim.bootstrap)
    found = [f"record-{number}" for number in range(RECORDS)]
    for number, text in enumerate(found):
        producer.send(topic, text.encode(), partition=number % PARTITIONS)
    producer.flush()
    producer.close()
    return sorted(found)


def test_librdkafka_shares_the_partitions(kshim: Server, tools: Tools, made: str) -> None:
    """Two members of one group, each record at one of them."""
    begin_at_the_earliest(kshim, tools, made)
    written = produce(kshim, made)
    options = {"bootstrap.servers": kshim.bootstrap, "group.id": made}
    members = [ShareConsumer(options) for _ in range(2)]
    found: list[str] = []
    with contextlib.ExitStack() as stack:
        for member in members:
            stack.callback(member.close)
            member.subscribe([made])
        ends_s = time.monotonic() + WITHIN_S
        while len(found) < RECORDS:
            assert time.monotonic() < ends_s, f"{len(found)} records\n{kshim.report()}"
            for member in members:
                found += [(each.value() or b"").decode() for each in member.poll(0.2) if not each.error()]
    assert sorted(found) == written


def test_apaches_tools_read_and_describe(kshim: Server, tools: Tools, made: str) -> None:
    """Several groups at a time, whose coordinators are different nodes."""
    group_ids = [f"{made}-{number}" for number in range(4)]
    with Wire(kshim.host, kshim.port) as wire:
        request = FindCoordinatorRequest(coordinator_keys=tuple(group_ids))
        wait_until(lambda: not any(it.error_code for it in wire.ask(4, request).coordinators), 30, "all")
    for group_id in group_ids:
        begin_at_the_earliest(kshim, tools, group_id)
    written = produce(kshim, made)
    for group_id in group_ids:
        read = tools.run(
            CONSOLE,
            *("--bootstrap-server", kshim.bootstrap, "--topic", made, "--group", group_id),
            *("--max-messages", str(RECORDS), "--timeout-ms", str(WITHIN_S * 1000)),
        )
        assert read.status == 0, read.text
        assert sorted(line for line in read.text.splitlines() if line.startswith("record-")) == written
    server = ("--bootstrap-server", kshim.bootstrap)
    listed = tools.run(SHARE_GROUPS, *server, "--list")
    assert set(group_ids) <= set(listed.text.split()), listed.text
    described = tools.run(
        SHARE_GROUPS, *server, "--describe", *(f"--group={each}" for each in group_ids), "--state"
    )
    for group_id in group_ids:
        (line,) = [each for each in described.text.splitlines() if each.startswith(f"{group_id} ")]
        assert "Empty" in line
    offsets = tools.run(SHARE_GROUPS, *server, "--describe", *(f"--group={each}" for each in group_ids))
    assert offsets.text.count(f" {made} ") == 4 * PARTITIONS, offsets.text


class Member:
    """A member of a streams group, which sends each request by itself, to kshim."""

    def __init__(self, kshim: Server, topic: str) -> None:
        self.topic = topic
        self._wire = Wire(kshim.host, kshim.port)
        self._member_id = f"member-of-{topic}"
        self._epoch = 0

    def heartbeat(self) -> StreamsGroupHeartbeatResponse:
        is_new = self._epoch == 0
        subtopology = Subtopology(
            subtopology_id="0",
            source_topics=(self.topic,),
            source_topic_regex=(),
            state_changelog_topics=(),
            repartition_sink_topics=(),
            repartition_source_topics=(),
            copartition_groups=(),
        )
        request = StreamsGroupHeartbeatRequest(
            group_id=self.topic,
            member_id=self._member_id,
            member_epoch=self._epoch,
            endpoint_information_epoch=0,
            rebalance_timeout_ms=10_000 if is_new else -1,
            topology=Topology(epoch=0, subtopologies=(subtopology,)) if is_new else None,
            active_tasks=() if is_new else None,
            standby_tasks=() if is_new else None,
            warmup_tasks=() if is_new else None,
            process_id="process" if is_new else None,
            client_tags=() if is_new else None,
            shutdown_application=False,
        )
        answer: StreamsGroupHeartbeatResponse = self._wire.ask(0, request)
        if not answer.error_code:
            self._epoch = answer.member_epoch
        return answer

    def commit(self, offset: int) -> ErrorCode:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self.topic,
            member_id=self._member_id,
            generation_id_or_member_epoch=self._epoch,
            topics=(OffsetCommitRequestTopic(name=self.topic, partitions=(partition,)),),
        )
        (answered,) = self._wire.ask(COMMIT, request).topics
        return ErrorCode(answered.partitions[0].error_code)

    def fetch(self) -> Any:
        return read_of(self._wire.ask(FETCH, fetch_request(self.topic, self.topic)))

    def close(self) -> None:
        self._wire.close()


def test_a_streams_group_and_its_offsets_are_the_upstream_s(nodes: Nodes, made: str, tmp_path: Any) -> None:
    alone = set_options({"upstream.groups.topic": "alone", "upstream.groups.group.id": "alone"})
    kshim = Server(tmp_path / "data", ["--upstream", nodes.bootstrap, *alone]).start()
    admin = Admin(nodes.bootstrap)
    try:
        member = Member(kshim, made)
        wait_until(lambda: not member.heartbeat().error_code, 30, lambda: f"{member.heartbeat()}")
        wait_until(lambda: member.commit(7) is ErrorCode.NONE, 30, lambda: f"{member.commit(7)}")
        assert admin.group_offsets(made)[made, 0] == 7
        assert member.fetch().offset == 7
        member.close()
        kshim.kill()
        kshim.restart()
        again = Member(kshim, made)
        assert again.fetch().error.retriable, "kshim has forgotten what kind of group it is"
        wait_until(lambda: again.fetch().offset == 7, 30, "the offset")
        assert "joins here" not in "\n".join(kshim.log)
        found = []
        for port in range(kshim.port, kshim.port + 2):
            with Wire(kshim.host, port) as wire:
                listed = wire.ask(LIST, ListGroupsRequest()).groups
                found += [each.group_type.lower() for each in listed if each.group_id == made]
        assert found == ["streams"]
        again.close()
    finally:
        admin.close()
        kshim.kill()
