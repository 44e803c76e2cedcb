"""A partition of Apache Kafka to which a test appends batches under any producer id, epoch and sequence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from integration.support.awaiting import wait_until
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, RecordBatchHeader, batches, decode_header, encode, records
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 12, 12, 7, 12
"""The versions that are asked."""
AGAIN = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
WITHIN_S = 60


class Answer(NamedTuple):
    """An answer to a batch."""

    error: ErrorCode
    offset: int = -1


class Stored(NamedTuple):
    """A record, and who has appended it."""

    offset: int
    producer_id: int
    producer_epoch: int
    sequence: int
    key: bytes | None
    value: bytes | None


class Partition:
    """Partition 0 of a topic, at whichever of the nodes leads it."""

    def __init__(self, topic: str, addresses: Callable[[], list[tuple[str, int]]]) -> None:
        """addresses: those of the nodes that run."""
        self.topic = topic
        self._addresses = addresses
        self._wire: Wire | None = None
        self._last: object = None

    @property
    def wire(self) -> Wire:
        """A connection to the leader."""
        if self._wire is None:
            self._wire = self._connect()
        return self._wire

    def _connect(self) -> Wire:
        def found() -> Wire | None:
            return next(filter(None, map(self._if_leader, self._addresses())), None)

        return wait_until(found, 60, "a leader")

    def _if_leader(self, address: tuple[str, int]) -> Wire | None:
        """A connection to this node, if it leads the partition."""
        try:
            wire = Wire(*address, timeout_s=WITHIN_S)
            request = MetadataRequest(topics=(MetadataRequestTopic(name=self.topic),))
            answer = wire.ask(METADATA, request)
            led_by = answer.topics[0].partitions[0].leader_id
            here = {(broker.host, broker.port): broker.node_id for broker in answer.brokers}.get(address)
        except (OSError, IndexError):
            return None
        return wire if led_by == here else None

    def leader_id(self) -> int:
        """The node id of the leader."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=self.topic),))
        node_id: int = self.wire.ask(METADATA, request).topics[0].partitions[0].leader_id
        return node_id

    def forget_leader(self) -> None:
        """Look for the leader again: it was stopped, or it has moved."""
        self._wire = None

    def create(self, replication_factor: int = 1, **configs: object) -> None:
        """Create the topic. The names of configs have _ where Kafka's have a dot."""
        host, port = self._addresses()[0]
        topic = CreatableTopic(
            name=self.topic,
            num_partitions=1,
            replication_factor=replication_factor,
            configs=tuple(
                CreatableTopicConfig(name=name.replace("_", "."), value=str(value))
                for name, value in configs.items()
            ),
        )
        with Wire(host, port, timeout_s=WITHIN_S) as wire:
            (created,) = wire.ask(7, CreateTopicsRequest(topics=(topic,))).topics
        assert created.error_code == ErrorCode.NONE, created

    def new_id(self, transactional_id: str | None = None) -> tuple[int, int]:
        """A producer id and epoch from InitProducerId."""
        if transactional_id is not None:  # the first question creates __transaction_state
            self.wire.ask(3, FindCoordinatorRequest(key=transactional_id, key_type=1))
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)

        def asked() -> tuple[int, int] | None:
            answer = self._last = self.wire.ask(5, request)
            if answer.error_code in AGAIN:
                return None
            assert answer.error_code == ErrorCode.NONE, answer
            return answer.producer_id, answer.producer_epoch

        return wait_until(asked, WITHIN_S, lambda: f"a producer id: {self._last}")

    def append(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        value: str = "",
        *,
        key: str = "key",
        count: int = 1,
        timestamp_ms: int | None = None,
    ) -> Answer:
        """Append a plain, idempotent batch; sent again while the partition has no leader."""
        at_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        pairs = (key.encode(), value.encode())
        batch = encode(
            [Record(number, at_ms, *pairs) for number in range(count)],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
        data = TopicProduceData(
            name=self.topic, partition_data=(PartitionProduceData(index=0, records=batch),)
        )
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(data,))

        def appended() -> Answer | None:
            try:
                answer = self.wire.ask(PRODUCE, request).responses[0].partition_responses[0]
            except OSError:
                self.forget_leader()
                return None
            error = ErrorCode(answer.error_code)
            if error in AGAIN:
                self.forget_leader()
                return None
            return Answer(error, answer.base_offset)

        return wait_until(appended, 60, "an answer to Produce")

    def end_offset(self) -> int:
        partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topic = ListOffsetsTopic(name=self.topic, partitions=(partition,))
        answer = self.wire.ask(LIST_OFFSETS, ListOffsetsRequest(topics=(topic,)))
        offset: int = answer.topics[0].partitions[0].offset
        return offset

    def read(self) -> list[Stored]:
        """All records, with the producers of their batches."""
        return [
            Stored(
                each.offset,
                header.producer_id,
                header.producer_epoch,
                header.base_sequence + each.offset - header.base_offset,
                each.key,
                each.value,
            )
            for header, batch in self._batches()
            for each in records(batch)
        ]

    def markers(self) -> list[EndTxnMarker]:
        """The ends of transactions, in the order of the log."""
        found = (decode_marker(batch) for header, batch in self._batches() if header.is_control)
        return [marker for marker in found if marker is not None]

    def _batches(self) -> Iterator[tuple[RecordBatchHeader, memoryview]]:
        offset, end = 0, self.end_offset()
        while offset < end:
            partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            topic = FetchTopic(topic=self.topic, partitions=(partition,))
            request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=(topic,))
            data = self.wire.ask(FETCH, request).responses[0].partitions[0].records
            for batch in batches(data or b""):
                header = decode_header(batch)
                offset = header.next_offset
                yield header, batch
