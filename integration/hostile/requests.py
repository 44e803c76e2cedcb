"""Requests that several attacks need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kshim.testing.wire import Wire, framed
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "target"
TIMEOUT_MS = 60_000
PRODUCE_VERSION = 7
TRANSACTION = 1
"""The type of a coordinator's key."""


def new_topic(name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )


def create_topic(
    wire: Wire, name: str = TOPIC, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic. Raises AssertionError if the server refuses it."""
    topics = (new_topic(name, partitions, configs),)
    (created,) = wire.ask(4, CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)).topics
    assert created.error_code == ErrorCode.NONE, created


def produce(*entries: bytes, transactional_id: str | None = None, topic: str = TOPIC) -> bytes:
    """A Produce frame with these batches, all for partition 0."""
    data = tuple(PartitionProduceData(index=0, records=records) for records in entries)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=(TopicProduceData(name=topic, partition_data=data),),
    )
    return framed(PRODUCE_VERSION, request)


def fetch(max_bytes: int, *, offset: int = 0, isolation_level: int = 0) -> bytes:
    """A Fetch frame for partition 0, from `offset` on."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),),
    )
    return framed(11, request)


def list_offsets(timestamp: int) -> bytes:
    """A ListOffsets frame for a timestamp in partition 0."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name=TOPIC, partitions=(partition,))
    return framed(7, ListOffsetsRequest(replica_id=-1, topics=(topic,)))


def answers(wire: Wire, frames: Sequence[bytes], in_flight: int) -> list[bytes]:
    """Send frames, `in_flight` at a time, and return the answers to all."""
    found: list[bytes] = []
    for start in range(0, len(frames), in_flight):
        chunk = frames[start : start + in_flight]
        wire.sendall(b"".join(chunk))
        found += [wire.frame() for _ in chunk]
    return found


def producer_id(wire: Wire, transactional_id: str) -> tuple[int, int]:
    """Return the producer id and epoch of a transactional id. Waits until its coordinator is ready."""
    wire.ask(2, FindCoordinatorRequest(key="first", key_type=TRANSACTION))
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS)
    response = wire.ask(1, request)
    while response.error_code in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    ):
        response = wire.ask(1, request)
    assert response.error_code == ErrorCode.NONE, response
    return response.producer_id, response.producer_epoch
