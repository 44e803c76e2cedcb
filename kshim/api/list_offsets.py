"""ListOffsets (2): offsets by time, and the ends of a log.

Special timestamps, and the version from which on they exist: -1 latest, -2 earliest, -3 the offset of the
largest timestamp (v7, KIP-734), -4 earliest on local disk (v8, KIP-405), -5 latest in tiered storage (v9,
KIP-1005), -6 earliest that is not yet in tiered storage (v11, KIP-1023). kshim has no tiered storage; the
last two are answered with -1, as by Kafka without tiered storage.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from kshim.answering.views import LogView
from kshim.callers import RequestContext
from kshim.cluster import Partition
from kshim.cluster.leadership import fault_in_leadership, first_epoch
from kshim.storage.interfaces import Log, Search, TimestampOffset
from kshim.turns.slices import Slices
from schemas.error_code import ErrorCode
from schemas.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

NONE = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
CONSUMER = -1  # replica_id
PARTITION_US = 20
LIGHT_STEP_US = 5_000
"""A step of a search that may take longer is done aside."""

Found = TimestampOffset | Search | None


def _latest(log: Log, partition: Partition, end: int) -> Found:
    return TimestampOffset(NONE, end, partition.leader_epoch)


def _earliest(log: Log, partition: Partition, end: int) -> Found:
    start = log.offsets(partition.partition_no).log_start_offset
    return TimestampOffset(NONE, start, first_epoch(log, partition))


def _max_timestamp(log: Log, partition: Partition, end: int) -> Found:
    return log.max_timestamp(partition.partition_no)


def _tiered(log: Log, partition: Partition, end: int) -> Found:
    return None


SPECIAL: dict[int, tuple[int, Callable[[Log, Partition, int], Found]]] = {
    -1: (0, _latest),
    -2: (0, _earliest),
    -3: (7, _max_timestamp),
    -4: (8, _earliest),
    -5: (9, _tiered),
    -6: (11, _tiered),
}


async def list_offsets(
    broker: LogView, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Look up each partition independently. A partition that is named twice is refused, with one answer."""
    asked: dict[str, dict[int, ListOffsetsPartition | None]] = {}
    for topic in request.topics:
        partitions = asked.setdefault(topic.name, {})
        for partition in topic.partitions:
            index = partition.partition_index
            partitions[index] = None if index in partitions else partition
    slices = Slices(broker.rounds, context.turn)
    topics = []
    for name, partitions in asked.items():
        answers = []
        for index, once in partitions.items():
            await slices.spend(PARTITION_US)
            if once is None:
                answers.append(_refusal(index, ErrorCode.INVALID_REQUEST))
            else:
                answers.append(await _answer(broker, context, request, name, once, slices))
        topics.append(ListOffsetsTopicResponse(name=name, partitions=tuple(answers)))
    return ListOffsetsResponse(topics=tuple(topics))


async def _answer(
    broker: LogView,
    context: RequestContext,
    request: ListOffsetsRequest,
    name: str,
    asked: ListOffsetsPartition,
    slices: Slices,
) -> ListOffsetsPartitionResponse:
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refusal(asked.partition_index, ErrorCode.UNKNOWN_SERVER_ERROR)
    since, special = SPECIAL.get(asked.timestamp, (0, None))
    if asked.timestamp < 0 and (special is None or context.api_version < since):
        return _refusal(asked.partition_index, ErrorCode.UNSUPPORTED_VERSION)
    known = broker.cluster.topics.get(name)
    partition = known.partition(asked.partition_index) if known else None
    if partition is None:
        return _refusal(asked.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = fault_in_leadership(broker.node_id, partition, asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return _refusal(asked.partition_index, error)
    end = _end(broker.log, partition, request)
    found: Found = (
        special(broker.log, partition, end)
        if special
        else broker.log.offset_for_time(partition.partition_no, asked.timestamp)
    )
    if isinstance(found, Generator):
        found = await _search(broker, context, slices, found)
        if found is not None and found.offset >= end:  # beyond what the client may read
            found = None
    if found is None:
        return _refusal(asked.partition_index, ErrorCode.NONE)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


async def _search(
    broker: LogView, context: RequestContext, slices: Slices, search: Search
) -> TimestampOffset | None:
    """Carry out a search, and return its result. Light steps are done in slices, the others aside."""
    result = None
    while True:
        try:
            step = search.send(result)
        except StopIteration as done:
            found: TimestampOffset | None = done.value
            return found
        if step.cost_us <= LIGHT_STEP_US:
            await slices.spend(step.cost_us)
            result = step.do()
        else:
            context.turn.is_alone = True
            result = await broker.aside.run(step.do, context.address)


def _end(log: Log, partition: Partition, request: ListOffsetsRequest) -> int:
    """The offset after the last record that the client may read."""
    offsets = log.offsets(partition.partition_no)
    if request.replica_id != CONSUMER:
        return offsets.log_end_offset
    is_committed = request.isolation_level == READ_COMMITTED
    return offsets.last_stable_offset if is_committed else offsets.high_watermark


def _refusal(partition_index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    """An answer without an offset, because of an error, or because all records are older than requested."""
    return ListOffsetsPartitionResponse(partition_index=partition_index, error_code=error)
