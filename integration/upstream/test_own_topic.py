"""The topic in which kshim keeps groups is safe from clients, and a group from what others send."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer
from integration.support.ports import Slot
from integration.support.server import Server
from integration.upstream.committer import Committer
from integration.upstream.transactor import Transactor
from kshim.coordination.shards import partition_for
from kshim.testing.wire import Wire
from kshim.upstream.shards.terms import FIRST_PRODUCER_ID
from schemas.error_code import ErrorCode
from schemas.internal_topics.pending_offset import KEY as PENDING_KEY
from schemas.internal_topics.shard_claim import KEY as CLAIM_KEY
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.records.batch import encode_entries

TOPIC = "__kshim_groups"
SHARDS = 50
NEARLY_A_BATCH = 250
"""Offsets with 4 KB of metadata: as plain records less than 1 MiB, as pending ones more."""
TCP = Path("/proc/net/tcp")
LARGE_BYTES = 300_000
"""Passes without being collected."""


@pytest.fixture(scope="module")
def kshim(kafka: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for the tests that leave it running, or start it again."""
    server = Server(tmp_path_factory.mktemp("kshim") / "data", ["--upstream", kafka.bootstrap]).start()
    yield server
    server.kill()


@pytest.fixture
def made(kafka: Server, topic: str) -> str:
    """A topic with one partition, made at the upstream."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    return topic


def wire(server: Server) -> Wire:
    return Wire(server.host, server.port)


def described(server: Server) -> MetadataResponseTopic:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))
    (found,) = wire(server).ask(12, request).topics
    return found  # type: ignore[no-any-return]


def forged(topic: dict[str, Any], shard: int, size: int, acks: int = -1) -> ProduceRequest:
    """A Produce under the last producer id and epoch that there are."""
    batch = encode_entries(
        [(b"K", bytes(size))],
        int(time.time() * 1000),
        producer_id=2**63 - 1,
        producer_epoch=32_767,
        base_sequence=0,
    )
    data = PartitionProduceData(index=shard, records=batch.data)
    return ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=(TopicProduceData(partition_data=(data,), **topic),)
    )


@pytest.mark.few
def test_clients_can_read_the_topic_and_nothing_else(kafka: Server, kshim: Server, made: str) -> None:
    committer = Committer([kshim], f"g-{made}", made)
    wait_until(lambda: committer.commit(1), 20, "the first commit")
    topic = described(kshim)
    assert topic.is_internal
    for size in (10, LARGE_BYTES):
        for version, named in ((9, {"name": TOPIC}), (13, {"topic_id": topic.topic_id})):
            for shard in range(len(topic.partitions)):
                answer = wire(kshim).ask(version, forged(named, shard, size))
                (found,) = answer.responses[0].partition_responses
                assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            without_answer = wire(kshim)
            without_answer.request(version, forged(named, 0, size, acks=0))
            with pytest.raises(ConnectionError):
                without_answer.read(1)
    for state in (DeleteTopicState(name=TOPIC), DeleteTopicState(topic_id=topic.topic_id)):
        (deleted,) = wire(kshim).ask(6, DeleteTopicsRequest(topics=(state,))).responses
        assert deleted.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert committer.commit(2)
    assert committer.read() == 2
    assert described(kafka).topic_id == topic.topic_id
    assert not described(kafka).is_internal


@pytest.mark.few
def test_large_commits_in_a_transaction_leave_other_groups_alone(kafka: Server, kshim: Server) -> None:
    """As pending offsets they take more than a batch, and so do all that a transaction has committed."""
    made = "sizes"
    admin = Admin(kafka.bootstrap)
    admin.create_topic(made, 2 * NEARLY_A_BATCH)
    admin.close()
    committer = Committer([kshim], "victim", made)
    wait_until(lambda: committer.commit(0), 20, "the first commit")
    evil = next(name for name in (f"evil-{n}" for n in range(1000)) if shard_of(name) == shard_of("victim"))
    producer = Transactor(wire(kshim), f"tx-{made}")
    ids = producer.producer_id, producer.producer_epoch
    added = AddOffsetsToTxnRequest(
        transactional_id=f"tx-{made}", producer_id=ids[0], producer_epoch=ids[1], group_id=evil
    )
    assert wire(kshim).ask(3, added).error_code == ErrorCode.NONE
    for first in (0, NEARLY_A_BATCH, 0):
        assert set(commit_in(kshim, f"tx-{made}", ids, evil, made, first)) == {ErrorCode.NONE}
        assert committer.commit(first)
    too_many = commit_in(kshim, f"tx-{made}", ids, evil, made, 0, 2 * NEARLY_A_BATCH)
    assert ErrorCode.UNKNOWN_SERVER_ERROR in too_many
    assert committer.commit(1)
    assert producer.end().error_code == ErrorCode.NONE
    until_s = time.monotonic() + 2
    while time.monotonic() < until_s:
        assert committer.commit(int(time.monotonic()))


def shard_of(group_id: str) -> int:
    return partition_for(group_id, SHARDS)


def commit_in(
    server: Server,
    transactional_id: str,
    producer: tuple[int, int],
    group_id: str,
    topic: str,
    first: int,
    count: int = NEARLY_A_BATCH,
) -> list[int]:
    """Commit offsets with as much metadata as Kafka takes; return the errors."""
    partitions = tuple(
        TxnOffsetCommitRequestPartition(
            partition_index=first + number, committed_offset=7, committed_metadata="m" * 4096
        )
        for number in range(count)
    )
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=partitions),),
    )
    (answered,) = wire(server).ask(3, request).topics
    return [each.error_code for each in answered.partitions]


def test_a_pattern_does_not_subscribe_to_it(kshim: Server, made: str) -> None:
    consumer = new_consumer(kshim.bootstrap, group_id=f"g-{made}", metadata_max_age_ms=500)
    consumer.subscribe(pattern=".*")
    until_s = time.monotonic() + 30
    while made not in {each.topic for each in consumer.assignment()}:
        consumer.poll(timeout_ms=100)
        assert time.monotonic() < until_s
    assert TOPIC not in {each.topic for each in consumer.assignment()}
    consumer.close()


def strange_batches() -> list[bytes]:
    """Batches that reach the topic only at the upstream itself."""
    now_ms = int(time.time() * 1000)
    strange = [
        (b"a stranger", b"'s record"),
        (CLAIM_KEY, b"\0\7 of a later version"),
        (b"\0\1", b"no offset"),
        (b"\0\2\0\1g", b"\0\x63 no group"),
        (PENDING_KEY, b"no pending offset"),
    ]
    ids = [(-1, -1), (4711, 0), (2**63 - 1, 32_767), (FIRST_PRODUCER_ID, 1_000)]
    return [
        encode_entries(
            [record], now_ms, producer_id=producer_id, producer_epoch=epoch, base_sequence=number
        ).data
        for producer_id, epoch in ids
        for number, record in enumerate(strange)
    ]


def test_strange_records_at_the_upstream_cost_no_group_its_coordinator(
    kafka: Server, kshim: Server, made: str
) -> None:
    committer = Committer([kshim], f"g-{made}", made)
    wait_until(lambda: committer.commit(1), 20, "the first commit")
    shard = shard_of(f"g-{made}")
    for batch in strange_batches():
        data = PartitionProduceData(index=shard, records=batch)
        topic = TopicProduceData(name=TOPIC, partition_data=(data,))
        answer = wire(kafka).ask(9, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(topic,)))
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    wait_until(lambda: committer.commit(2), 30, "a commit")
    assert committer.read() == 2
    kshim.kill()
    kshim.restart()
    wait_until(lambda: committer.read() == 2, 30, "the offset")
    assert f"shard {shard}: " in kshim.report()


STRANGERS = 100
LOGIN = (
    *("--set", "listener.security.protocol.map=LOGIN:SASL_PLAINTEXT"),
    *("--set", "sasl.enabled.mechanisms=PLAIN"),
    "--set",
    "plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' user_alice="secret";',
)


@pytest.mark.skipif(not TCP.exists(), reason="connections are counted in /proc")
def test_strangers_cause_no_connections_to_the_upstream(kafka: Server, tmp_path: Path) -> None:
    slot = Slot()
    options = [*("--listen", f"LOGIN://127.0.0.1:{slot.port}"), *LOGIN, "--upstream", kafka.bootstrap]
    kshim = Server(tmp_path / "kshim", options).start_at(slot)
    before = connections_to(kafka.port)
    strangers = [wire(kshim) for _ in range(STRANGERS)]
    request = ApiVersionsRequest(client_software_name="stranger", client_software_version="1")
    answers = [stranger.ask(3, request) for stranger in strangers]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert connections_to(kafka.port) - before < 10
    for stranger in strangers:
        stranger.close()
    kshim.kill()


def connections_to(port: int) -> int:
    """The number of this machine's connections to a port."""
    lines = TCP.read_text().splitlines()[1:]
    return sum(line.split()[2].endswith(f":{port:04X}") for line in lines)
