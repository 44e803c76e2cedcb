"""DescribeProducers (61): a partition's producers, and where their open transactions begin (KIP-664).

Every replica answers, because `TransactionsCommand find-hanging --broker-id` needs that.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import islice

from kshim.answering.views import LogView
from kshim.callers import RequestContext
from kshim.cluster import fault_in_name
from kshim.cluster.leadership import fault_in_leadership
from kshim.turns.slices import AnswerElements, in_slices
from schemas.error_code import ErrorCode
from schemas.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

PARTITION_US = 1000


async def describe_producers(
    broker: LogView, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe each partition independently. A partition that is named again is not read again."""
    asked = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    described_once = cache(partial(_describe, broker))
    made = AnswerElements()

    def describe(each: tuple[str, int]) -> PartitionResponse:
        made.check()
        described = described_once(*each)
        made.add(len(described.active_producers))
        return described

    left = iter(await in_slices(broker.rounds, context.turn, asked, describe, lambda _: PARTITION_US))
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(name=topic.name, partitions=tuple(islice(left, len(topic.partition_indexes))))
            for topic in request.topics
        )
    )


def _describe(broker: LogView, topic_name: str, index: int) -> PartitionResponse:
    if (fault := fault_in_name(topic_name)) is not None:
        return _refusal(index, ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    topic = broker.cluster.topics.get(topic_name)
    partition = None if topic is None else topic.partition(index)
    if topic is None:
        return _refusal(
            index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    if partition is None:
        return _refusal(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if (error := fault_in_leadership(broker.node_id, partition, any_replica=True)) is not ErrorCode.NONE:
        return _refusal(index, error)
    producers = broker.log.producers(partition.partition_no)
    return PartitionResponse(
        partition_index=index,
        active_producers=tuple(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_start,
            )
            for producer_id, producer in sorted(producers.items())
        ),
    )


def _refusal(index: int, error_code: ErrorCode, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error_code, error_message=message)
