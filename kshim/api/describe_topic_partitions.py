"""DescribeTopicPartitions (75): topics by name and partitions by index, a page at a time (KIP-966)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from kshim.answering.authorized_operations import TOPIC_OPERATIONS
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import ZERO_UUID, Partition, fault_in_name
from kshim.cluster.topics import NO_LEADER
from kshim.turns.slices import Slices
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

MAX_PARTITIONS = 2000  # max.request.partition.size.limit
SORTED_AT_ONCE = 2_000
TOPIC_US, PARTITION_US = 5, 3

ResponseTopic = DescribeTopicPartitionsResponseTopic


async def describe_topic_partitions(
    broker: ClusterView, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return a page of the requested topics, or of all topics if none is named, and the cursor of the next
    page.

    As in Kafka, all topics are refused if the cursor names none of the requested topics, or if a request
    without a cursor has an empty topic name.
    """
    start = request.cursor or Cursor(topic_name="", partition_index=0)
    asked = [topic.name for topic in request.topics]
    if "" in asked and request.cursor is None:
        return _refused(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
    names = await _sorted(broker, context, asked or list(broker.cluster.topics), start.topic_name)
    if start.partition_index < 0 or (asked and request.cursor and names[:1] != [start.topic_name]):
        return _refused(asked, ErrorCode.INVALID_REQUEST)
    limit = max(1, min(MAX_PARTITIONS, request.response_partition_limit))
    topics, cursor = await _page(broker, context, names, start, limit)
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


async def _sorted(
    broker: ClusterView, context: RequestContext, names: Collection[str], first: str
) -> list[str]:
    """The names from `first` on, sorted, without duplicates."""

    def sort() -> list[str]:
        return sorted({name for name in names if name >= first})

    if len(names) <= SORTED_AT_ONCE:
        return sort()
    context.turn.is_alone = True
    return await broker.aside.run(sort, context.address)


def _refused(asked: Sequence[str], error: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=Mapped(partial(_absent, error), asked))


async def _page(
    broker: ClusterView, context: RequestContext, names: Iterable[str], start: Cursor, limit: int
) -> tuple[list[ResponseTopic], Cursor | None]:
    """Return topics with at most `limit` partitions in all, and the cursor of the next page."""
    slices, may_see = Slices(broker.rounds, context.turn), context.may_see
    described: list[ResponseTopic] = []
    for name in names:
        await slices.spend(TOPIC_US)
        if may_see is not None and not may_see(name):
            continue
        if limit == 0:
            return described, Cursor(topic_name=name, partition_index=0)
        first = start.partition_index if name == start.topic_name else 0
        topic = _topic(broker, name, first, first + limit)
        described.append(topic)
        limit -= len(topic.partitions)
        if name in broker.cluster.topics and first + len(topic.partitions) < len(
            broker.cluster.topics[name].partitions
        ):
            return described, Cursor(topic_name=name, partition_index=first + len(topic.partitions))
        await slices.spend(PARTITION_US * len(topic.partitions))
    return described, None


def _topic(broker: ClusterView, name: str, first: int, end: int) -> ResponseTopic:
    topic = broker.cluster.topics.get(name)
    if topic is None:
        fault = fault_in_name(name)
        error = ErrorCode.INVALID_TOPIC_EXCEPTION if fault else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _absent(error, name, TOPIC_OPERATIONS)
    return ResponseTopic(
        error_code=ErrorCode.NONE,
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(_partition(each, broker.cluster.running) for each in topic.partitions[first:end]),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _absent(error: ErrorCode, name: str, operations: int = -(1 << 31)) -> ResponseTopic:
    return ResponseTopic(
        error_code=error, name=name, topic_id=ZERO_UUID, topic_authorized_operations=operations
    )


def _partition(partition: Partition, running: Collection[int]) -> DescribeTopicPartitionsResponsePartition:
    leaderless = partition.leader == NO_LEADER
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leaderless else ErrorCode.NONE,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=tuple(node for node in partition.replicas if node not in running),
    )
