"""OffsetForLeaderEpoch (23): the offset at which the records of a leader epoch end.

After a change of leaders, a consumer uses it to find out whether its position was truncated (KIP-320).
"""

from __future__ import annotations

from itertools import islice

from kshim.answering.views import LogView
from kshim.callers import RequestContext
from kshim.cluster.leadership import end_of_epoch, fault_in_leadership
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)

PARTITION_US = 10
"""The time that a partition takes: at most one search in the log."""


async def offset_for_leader_epoch(
    broker: LogView, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look up each partition independently."""
    asked = [(topic, partition) for topic in request.topics for partition in topic.partitions]
    found = await in_slices(
        broker.rounds, context.turn, asked, lambda each: _end_offset(broker, *each), lambda _: PARTITION_US
    )
    left = iter(found)
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=tuple(islice(left, len(topic.partitions)))
            )
            for topic in request.topics
        )
    )


def _end_offset(
    broker: LogView, topic: OffsetForLeaderTopic, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    known = broker.cluster.topics.get(topic.topic)
    partition = known.partition(asked.partition) if known else None
    if partition is None:
        return EpochEndOffset(partition=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = fault_in_leadership(broker.node_id, partition, asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return EpochEndOffset(partition=asked.partition, error_code=error)
    leader_epoch, end_offset = end_of_epoch(broker.log, partition, asked.leader_epoch)
    return EpochEndOffset(
        partition=asked.partition,
        error_code=ErrorCode.NONE,
        leader_epoch=leader_epoch,
        end_offset=end_offset,
    )
