"""Finds the partition and the batch of each entry of a Produce request, or why the entry is refused."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kshim.callers import RequestContext
from kshim.cluster import Cluster, Partition, Topic
from schemas.error_code import ErrorCode
from schemas.messages.produce import BatchIndexAndErrorMessage, PartitionProduceData, TopicProduceData
from schemas.records.batch import CorruptRecordBatch, sole_batch

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_BY_TOPIC_ID = 13

Entry = tuple[TopicProduceData, PartitionProduceData]


class Finding(Protocol):
    """The broker whose topics are asked for."""

    @property
    def cluster(self) -> Cluster: ...


class Target(NamedTuple):
    """One partition's batch, and the partition to append it to."""

    topic: Topic
    partition: Partition
    batch: memoryview


class NotAppended(NamedTuple):
    """The reason why a batch is not appended."""

    error_code: ErrorCode
    message: str | None = None
    log_start_offset: int = -1
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
    led_elsewhere: Partition | None = None
    """The partition, if another broker leads it."""


Found = Target | NotAppended


def find(broker: Finding, context: RequestContext, entry: Entry) -> Found:
    """Return the target of an entry, or its refusal. Kafka makes these checks first."""
    topic_data, data = entry
    by_id = context.api_version >= FIRST_VERSION_BY_TOPIC_ID
    cluster = broker.cluster
    topic = cluster.topic_by_id(topic_data.topic_id) if by_id else cluster.topics.get(topic_data.name)
    if topic is None:
        return NotAppended(ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partition(data.index)
    if partition is None:
        return NotAppended(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        batch = sole_batch(data.records or b"", allow_zstd=context.api_version >= FIRST_VERSION_WITH_ZSTD)
    except CorruptRecordBatch as error:
        return NotAppended(error.error_code, str(error))
    return Target(topic, partition, batch)
