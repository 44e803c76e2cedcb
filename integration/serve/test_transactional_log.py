"""A log's last stable offset, aborted transactions and producers' last batches outlive `kill -9`."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import pytest

from integration.support.awaiting import wait_until
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, batches, decode_header, encode

NOW_MS = int(time.time() * 1000)  # older records would expire
READ_COMMITTED = 1
LATEST = -1
TRANSACTION = 1  # the key type of a transaction coordinator
NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class Client:
    """Sends requests about one topic."""

    def __init__(self, server: Server, topic: str) -> None:
        self.wire, self.topic = Wire(server.host, server.port), topic

    def create(self, partitions: int) -> None:
        created = CreatableTopic(
            name=self.topic, num_partitions=partitions, replication_factor=1, assignments=()
        )
        self.wire.ask(5, CreateTopicsRequest(topics=(created,), timeout_ms=10_000))
        wait_until(lambda: all(self.is_led(index) for index in range(partitions)), 10, "the topic's leaders")

    def is_led(self, index: int) -> bool:
        return int(self.fetched(index, 0).error_code) == ErrorCode.NONE

    def fetched(self, index: int, offset: int) -> Any:
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=READ_COMMITTED,
            topics=(FetchTopic(topic=self.topic, partitions=(wanted,)),),
        )
        return self.wire.ask(11, request).responses[0].partitions[0]

    def log_end_offset(self, index: int) -> int:
        wanted = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        topics = (ListOffsetsTopic(name=self.topic, partitions=(wanted,)),)
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        return int(self.wire.ask(4, request).topics[0].partitions[0].offset)

    def send(self, producer: Producer, index: int, sequence: int, **more: Any) -> tuple[ErrorCode, int]:
        """(error, base offset) of a batch of two records."""
        batch = encode(
            [Record(delta, NOW_MS, b"k", b"v") for delta in range(2)],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=producer.transactional_id is not None,
        )
        topic = TopicProduceData(
            name=self.topic, partition_data=(PartitionProduceData(index=index, records=batch),)
        )
        request = ProduceRequest(
            transactional_id=producer.transactional_id, acks=-1, timeout_ms=5000, topic_data=(topic,)
        )
        answer = self.wire.ask(9, request).responses[0].partition_responses[0]
        return ErrorCode(answer.error_code), answer.base_offset

    def producer(self, transactional_id: str | None) -> Producer:
        if transactional_id is not None:
            wanted = FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION)
            self.until_served(lambda: self.wire.ask(1, wanted))
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        given = self.until_served(lambda: self.wire.ask(2, request))
        return Producer(transactional_id, given.producer_id, given.producer_epoch)

    def begin(self, producer: Producer, *indexes: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id or "",
            v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=self.topic, partitions=indexes),),
        )

        def is_added() -> bool:
            response = self.wire.ask(1, request)
            (topic,) = response.results_by_topic_v3_and_below
            errors = {ErrorCode(result.partition_error_code) for result in topic.results_by_partition}
            assert errors <= NOT_YET | {ErrorCode.NONE}
            return errors == {ErrorCode.NONE}

        wait_until(is_added, 10, "the partitions to be added")

    def end(self, producer: Producer, *indexes: int, committed: bool) -> None:
        """End the transaction, and wait until its markers are written."""
        ends = {index: self.log_end_offset(index) for index in indexes}
        request = EndTxnRequest(
            transactional_id=producer.transactional_id or "",
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        self.until_served(lambda: self.wire.ask(1, request))
        for index in indexes:
            wait_until(lambda i=index: self.log_end_offset(i) == ends[i] + 1, 10, "the marker")

    def until_served(self, ask: Any) -> Any:
        answers: list[Any] = []

        def is_served() -> bool:
            answers.append(ask())
            error = ErrorCode(answers[-1].error_code)
            assert error is ErrorCode.NONE or error in NOT_YET
            return error is ErrorCode.NONE

        wait_until(is_served, 10, "the transaction coordinator")
        return answers[-1]

    def known(self, index: int) -> tuple[Any, ...]:
        """All that read_committed consumers see: offsets, aborted transactions, and the headers of the
        batches."""
        answer = self.fetched(index, 0)
        assert answer.error_code == ErrorCode.NONE
        headers = [decode_header(batch) for batch in batches(answer.records or b"")]
        return (
            answer.high_watermark,
            answer.last_stable_offset,
            [(aborted.producer_id, aborted.first_offset) for aborted in answer.aborted_transactions],
            [(header.base_offset, header.producer_id, header.is_control) for header in headers],
        )


class Producer(NamedTuple):
    """Without a transactional_id it is an idempotent producer."""

    transactional_id: str | None
    id: int
    epoch: int


def killed_and_back(server: Server, topic: str, high_watermarks: dict[int, int]) -> Client:
    """Kill the server, start it again, and return a client once it serves the partitions."""
    server.kill()
    server.restart()
    client = Client(server, topic)

    def are_back() -> bool:
        return all(client.is_led(i) and client.known(i)[0] == mark for i, mark in high_watermarks.items())

    wait_until(are_back, 10, "the high watermarks")
    return client


def test_a_kill_changes_nothing(own_server: Server, topic: str) -> None:
    client = Client(own_server, topic)
    client.create(2)
    first, second = client.producer(f"{topic}-1"), client.producer(f"{topic}-2")
    numbered = client.producer(None)
    client.begin(first, 0, 1)
    for sequence in range(0, 14, 2):
        assert client.send(first, 0, sequence) == (ErrorCode.NONE, sequence)
    client.end(first, 0, committed=False)  # 14
    client.begin(first, 0)
    client.begin(second, 0)
    assert client.send(second, 0, 0) == (ErrorCode.NONE, 15)
    assert client.send(first, 0, 14) == (ErrorCode.NONE, 17)
    assert client.send(numbered, 0, 0) == (ErrorCode.NONE, 19)
    client.end(first, 0, committed=True)  # 21
    before = client.known(0), client.known(1)
    assert before[0][:3] == (22, 15, [(first.id, 0)])

    for _ in range(2):
        client = killed_and_back(own_server, topic, {0: 22, 1: before[1][0]})
        assert (client.known(0), client.known(1)) == before

    # The open transaction is still open, and its batches are still known as sent.
    assert client.send(second, 0, 0) == (ErrorCode.NONE, 15)
    assert client.send(numbered, 0, 0) == (ErrorCode.NONE, 19)
    assert client.send(numbered, 0, 4) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert client.send(numbered, 0, 2) == (ErrorCode.NONE, 22)
    assert client.send(second, 0, 2) == (ErrorCode.NONE, 24)
    client.end(second, 0, committed=False)  # 26
    assert client.known(0)[:3] == (27, 27, [(first.id, 0), (second.id, 15)])


@pytest.mark.kshim_only("Kafka's snapshots of producers keep the last batch alone")
def test_a_kill_forgets_none_of_the_last_five_batches(own_server: Server, topic: str) -> None:
    client = Client(own_server, topic)
    client.create(1)
    producer = client.producer(None)
    for sequence in range(0, 14, 2):
        assert client.send(producer, 0, sequence) == (ErrorCode.NONE, sequence)
    client = killed_and_back(own_server, topic, {0: 14})
    for sequence in range(4, 14, 2):
        assert client.send(producer, 0, sequence) == (ErrorCode.NONE, sequence)
    assert client.send(producer, 0, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert client.log_end_offset(0) == 14


def test_kills_in_the_middle_of_transactions(own_server: Server, topic: str) -> None:
    """One transaction after the other, with a kill in each: each is there whole or not at all."""
    client = Client(own_server, topic)
    client.create(1)
    outcomes: list[tuple[int, bool]] = []
    for number in range(4):
        producer = client.producer(topic)
        client.begin(producer, 0)
        error, first_offset = client.send(producer, 0, 0)
        assert error is ErrorCode.NONE
        client = killed_and_back(own_server, topic, {0: first_offset + 2})
        assert client.known(0)[1] == first_offset
        if number % 2:
            client.end(producer, 0, committed=True)
        else:
            client.producer(topic)  # a new producer aborts the open transaction
            wait_until(lambda: client.known(0)[0] == client.known(0)[1], 10, "the end")  # noqa: B023
        outcomes.append((first_offset, bool(number % 2)))
    high_watermark, last_stable_offset, aborted, _ = client.known(0)
    assert high_watermark == last_stable_offset
    assert [first for _, first in aborted] == [first for first, committed in outcomes if not committed]
