"""DeleteRecords (21): delete the first records of partitions (KIP-107). v2: flexible.

The answer is sent when the new log start offsets are durable. The space is freed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from kshim.answering.views import LogView
from kshim.callers import RequestContext
from kshim.cluster.leadership import fault_in_leadership
from kshim.storage.interfaces import StorageError
from kshim.turns.promise import together
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1
NO_OFFSET = -1
PARTITIONS_AT_ONCE = 200
"""Partitions that are handled in one go, which may take 10 ms."""

_Wanted = tuple[str, DeleteRecordsPartition]
"""The name of a topic, and the request's entry for one of its partitions."""


async def delete_records(
    broker: LogView, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Delete from each partition independently. If a partition is named twice, its last entry counts."""
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        of_topic = wanted.setdefault(topic.name, {})
        of_topic |= {partition.partition_index: partition for partition in topic.partitions}
    all_wanted = [(name, each) for name, partitions in wanted.items() for each in partitions.values()]

    async def delete(some: Sequence[_Wanted]) -> Iterable[DeleteRecordsPartitionResult]:
        return await together(_delete(broker, name, partition) for name, partition in some)

    left = iter(await in_pieces(broker.rounds, context.turn, all_wanted, delete, PARTITIONS_AT_ONCE))
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(name=name, partitions=tuple(islice(left, len(partitions))))
            for name, partitions in wanted.items()
        )
    )


async def _delete(broker: LogView, name: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    """Delete records from one partition. The checks before that are in Kafka's order."""
    topic = broker.cluster.topics.get(name)
    partition = None if topic is None else topic.partition(wanted.partition_index)
    if topic is None or partition is None:
        return _refusal(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.is_internal:
        return _refusal(wanted, ErrorCode.INVALID_TOPIC_EXCEPTION)
    fault = fault_in_leadership(broker.node_id, partition)
    if fault is not ErrorCode.NONE:
        return _refusal(wanted, fault)
    if broker.cluster.log_config(topic).cleanup.retention is None:
        return _refusal(wanted, ErrorCode.POLICY_VIOLATION)  # without cleanup.policy=delete
    high_watermark = broker.log.offsets(partition.partition_no).high_watermark
    offset = high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
    if not 0 <= offset <= high_watermark:
        return _refusal(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        log_start_offset = await broker.log.delete_records(partition.partition_no, offset)
    except StorageError:
        return _refusal(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=log_start_offset, error_code=ErrorCode.NONE
    )


def _refusal(wanted: DeleteRecordsPartition, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=NO_OFFSET, error_code=error
    )
