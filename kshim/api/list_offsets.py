"""ListOffsets (2): offsets by time, and the ends of a log.

Special timestamps, with the version that brought them: -1 latest, -2 earliest, -3 that of the largest
timestamp (v7, KIP-734), -4 earliest on local disk (v8, KIP-405), -5 latest in tiered storage (v9, KIP-1005),
-6 earliest that is not yet in tiered storage (v11, KIP-1023). There is no tiered storage here; the last two
answer -1, as Kafka does without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kshim.api.leadership import fault_in_leadership
from kshim.cluster import Partition
from kshim.context import Broker, RequestContext
from kshim.storage.interfaces import Log, TimestampOffset
from schemas.error_code import ErrorCode
from schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

NONE = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

Found = TimestampOffset | None


def _latest(log: Log, partition: Partition) -> Found:
    """The high watermark; also the last stable offset, as there are no transactions."""
    return TimestampOffset(NONE, log.offsets(partition.partition_no).high_watermark, partition.leader_epoch)


def _earliest(log: Log, partition: Partition) -> Found:
    return TimestampOffset(NONE, log.offsets(partition.partition_no).log_start_offset, partition.leader_epoch)


def _max_timestamp(log: Log, partition: Partition) -> Found:
    return log.max_timestamp(partition.partition_no)


def _tiered(log: Log, partition: Partition) -> Found:
    return None


SPECIAL: dict[int, tuple[int, Callable[[Log, Partition], Found]]] = {
    -1: (0, _latest),
    -2: (0, _earliest),
    -3: (7, _max_timestamp),
    -4: (8, _earliest),
    -5: (9, _tiered),
    -6: (11, _tiered),
}


def list_offsets(broker: Broker, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Each partition by itself. One that is named twice is refused, once."""
    named = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _refusal(asked, ErrorCode.INVALID_REQUEST)
                    if named[topic.name, asked.partition_index] > 1
                    else _answer(broker, context, request, topic, asked)
                    for asked in {asked.partition_index: asked for asked in topic.partitions}.values()
                ),
            )
            for topic in request.topics
        )
    )


def _answer(
    broker: Broker,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: ListOffsetsTopic,
    asked: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refusal(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
    since, special = SPECIAL.get(asked.timestamp, (0, None))
    if asked.timestamp < 0 and (special is None or context.api_version < since):
        return _refusal(asked, ErrorCode.UNSUPPORTED_VERSION)
    known = broker.cluster.topics.get(topic.name)
    partition = known.partition(asked.partition_index) if known else None
    if partition is None:
        return _refusal(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = fault_in_leadership(broker, partition, asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return _refusal(asked, error)
    found = (
        special(broker.log, partition)
        if special
        else broker.log.offset_for_time(partition.partition_no, asked.timestamp)
    )
    if found is None:
        return _refusal(asked, ErrorCode.NONE)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _refusal(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    """No offset: because of an error, or because no record is as late as asked."""
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
