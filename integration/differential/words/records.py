"""The verbs about records: what producers send, and what readers and administrators ask.

A *place* is a topic's name and a partition. Consecutive entries of one topic are grouped under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, TypeVar
from uuid import UUID

from integration.differential.words.batches import at_ms
from integration.differential.words.history import Ask, Session, SessionEpoch, TopicId
from schemas.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from schemas.messages.describe_producers import DescribeProducersRequest, TopicRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TIMEOUT_MS = 10_000
ZERO_ID = UUID(int=0)
Topic = str | UUID | TopicId
"""A topic's name, which also stands for its id; or an id without a name."""
T = TypeVar("T")


def by_topic(entries: Iterable[tuple[Any, ...]], part: Callable[..., T]) -> list[tuple[Topic, tuple[T, ...]]]:
    """Entries (topic, …) grouped by topic, where consecutive."""
    return [
        (topic, tuple(part(*rest) for _, *rest in some))
        for topic, some in groupby(entries, lambda entry: entry[0])
    ]


def _id(topic: Topic) -> Any:
    return TopicId(topic) if isinstance(topic, str) else topic


def _name(topic: Topic) -> str:
    return topic if isinstance(topic, str) else ""


def produce(
    client: str,
    *entries: tuple[Topic, int, Any],
    transaction: str | None = None,
    acks: int = -1,
    **options: Any,
) -> Ask:
    """Produce of (topic, partition, what): a Batch, bytes, or None."""

    def part(index: int, what: Any) -> PartitionProduceData:
        return PartitionProduceData(index=index, records=what)

    request = ProduceRequest(
        transactional_id=transaction,
        acks=acks,
        timeout_ms=TIMEOUT_MS,
        topic_data=tuple(
            TopicProduceData(name=_name(topic), topic_id=_id(topic), partition_data=parts)
            for topic, parts in by_topic(entries, part)
        ),
    )
    return Ask(client=client, request=request, **options)


def read(
    client: str,
    *entries: tuple[Topic, int, int] | tuple[Topic, int, int, dict[str, Any]],
    isolation: int = 0,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    min_bytes: int = 1,
    replica: int = -1,
    session: tuple[Any, Any] = (0, -1),
    forget: tuple[tuple[Topic, int], ...] = (),
    **options: Any,
) -> Ask:
    """Fetch of (topic, partition, offset[, other fields of the partition]). session: id and epoch."""

    def part(index: int, offset: int, more: dict[str, Any] | None = None) -> FetchPartition:
        fields = {"partition_max_bytes": partition_max_bytes, **(more or {})}
        return FetchPartition(partition=index, fetch_offset=offset, replica_directory_id=ZERO_ID, **fields)

    request = FetchRequest(
        replica_id=replica,
        replica_state=ReplicaState(replica_id=replica),
        max_wait_ms=0,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=tuple(
            FetchTopic(topic=_name(topic), topic_id=_id(topic), partitions=parts)
            for topic, parts in by_topic(entries, part)
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic=_name(topic), topic_id=_id(topic), partitions=parts)
            for topic, parts in by_topic(forget, lambda index: index)
        ),
        rack_id="",
    )
    return Ask(client=client, request=request, **options)


def go_on_reading(client: str, *entries: tuple[Any, ...], later: int = 0, **options: Any) -> Ask:
    """Fetch in the client's current session."""
    return read(client, *entries, session=(Session(client), SessionEpoch(client, later)), **options)


def list_offsets(
    client: str,
    *entries: tuple[str, int, int] | tuple[str, int, int, int],
    isolation: int = 0,
    replica: int = -1,
    **options: Any,
) -> Ask:
    """ListOffsets of (topic, partition, timestamp[, current leader epoch]); timestamps as in `at_ms`."""

    def part(index: int, timestamp: int, epoch: int = -1) -> ListOffsetsPartition:
        return ListOffsetsPartition(
            partition_index=index, timestamp=at_ms(timestamp), current_leader_epoch=epoch
        )

    request = ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=tuple(
            ListOffsetsTopic(name=_name(topic), partitions=parts) for topic, parts in by_topic(entries, part)
        ),
        timeout_ms=TIMEOUT_MS,
    )
    return Ask(client=client, request=request, **options)


def ends_of_epochs(
    client: str, *entries: tuple[str, int, int] | tuple[str, int, int, int], replica: int = -2, **options: Any
) -> Ask:
    """OffsetForLeaderEpoch of (topic, partition, epoch[, current leader epoch])."""

    def part(index: int, epoch: int, current: int = -1) -> OffsetForLeaderPartition:
        return OffsetForLeaderPartition(partition=index, leader_epoch=epoch, current_leader_epoch=current)

    topics = tuple(
        OffsetForLeaderTopic(topic=_name(topic), partitions=parts) for topic, parts in by_topic(entries, part)
    )
    request = OffsetForLeaderEpochRequest(replica_id=replica, topics=topics)
    return Ask(client=client, request=request, **options)


def delete_records(client: str, *entries: tuple[str, int, int], **options: Any) -> Ask:
    """DeleteRecords of (topic, partition, offset)."""

    def part(index: int, offset: int) -> DeleteRecordsPartition:
        return DeleteRecordsPartition(partition_index=index, offset=offset)

    topics = tuple(
        DeleteRecordsTopic(name=_name(topic), partitions=parts) for topic, parts in by_topic(entries, part)
    )
    request = DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    return Ask(client=client, request=request, **options)


def describe_producers(client: str, *places: tuple[str, int], **options: Any) -> Ask:
    topics = tuple(
        TopicRequest(name=_name(topic), partition_indexes=parts)
        for topic, parts in by_topic(places, lambda index: index)
    )
    return Ask(client=client, request=DescribeProducersRequest(topics=topics), **options)
