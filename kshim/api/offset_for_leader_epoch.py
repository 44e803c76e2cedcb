"""OffsetForLeaderEpoch (23): the offset at which the records of a leader epoch end.

A consumer finds out with it, after a change of leaders, whether its position was truncated (KIP-320).
"""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.leadership import end_of_epoch, fault_in_leadership
from schemas.error_code import ErrorCode
from schemas.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look up each partition by itself."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_end_offset(broker, topic, asked) for asked in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _end_offset(
    broker: Broker, topic: OffsetForLeaderTopic, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    known = broker.cluster.topics.get(topic.topic)
    partition = known.partition(asked.partition) if known else None
    if partition is None:
        return EpochEndOffset(partition=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = fault_in_leadership(broker, partition, asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return EpochEndOffset(partition=asked.partition, error_code=error)
    leader_epoch, end_offset = end_of_epoch(broker.log, partition, asked.leader_epoch)
    return EpochEndOffset(
        partition=asked.partition,
        error_code=ErrorCode.NONE,
        leader_epoch=leader_epoch,
        end_offset=end_offset,
    )
