"""Fetch (1): record batches from an offset on, at once or when enough have come. v13 names topics by id
(KIP-516).

Fetch sessions (KIP-227) are answered with session id 0: none is kept, so every request names all its
partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kshim.api.leadership import NO_EPOCH, fault_in_leadership
from kshim.api.parked_fetch import ParkedFetch, Position
from kshim.cluster import Partition, Topic
from kshim.context import Broker, RequestContext
from schemas.error_code import ErrorCode
from schemas.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

FIRST_VERSION_BY_TOPIC_ID = 13
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NO_EPOCH_END = EpochEndOffset()
FULL_EPOCHS = (0, -1)  # session epochs of a request that names all its partitions


def fetch(
    broker: Broker, context: RequestContext, request: FetchRequest
) -> FetchResponse | Deferred[FetchResponse]:
    """Answer at once if there are min_bytes, or an error, or no time; else park until one of these.

    A parked Fetch is also finished by `context.hurry`: what is behind it on its connection would have to
    wait.
    """
    if request.session_epoch not in FULL_EPOCHS:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    by_id = context.api_version >= FIRST_VERSION_BY_TOPIC_ID
    reading = Reading(broker, request, by_id)
    response = reading.read()
    if request.max_wait_ms <= 0 or reading.failed or not reading.positions or context.hurry.fired:
        return response
    missing_bytes = min(request.min_bytes, reading.max_bytes) - reading.counted_bytes
    if missing_bytes <= 0:
        return response
    parked = ParkedFetch(broker.log, reading.positions, missing_bytes)

    def read_again() -> FetchResponse:
        """All anew: meanwhile a topic may have been deleted or made."""
        return Reading(broker, request, by_id).read()

    return parked.wait(broker.clock, request.max_wait_ms, context.hurry, read_again)


def _refuse_all(request: FetchRequest, error: ErrorCode) -> FetchResponse:
    return FetchResponse(
        error_code=error,
        responses=tuple(
            FetchableTopicResponse(
                topic=asked.topic,
                topic_id=asked.topic_id,
                partitions=tuple(_refusal(wanted, error, ()) for wanted in asked.partitions),
            )
            for asked in request.topics
        ),
    )


def _refusal(
    wanted: FetchPartition,
    error: ErrorCode,
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None,
) -> PartitionData:
    """Without records. The aborted transactions are null if Kafka gets as far as the log, else empty."""
    return PartitionData(
        partition_index=wanted.partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=aborted_transactions,
        records=b"",
    )


@dataclass(slots=True)
class Reading:
    """One pass over the partitions of a request.

    bytes_read: of all partitions; the first that has any may bring a batch larger than every limit.
    counted_bytes: what that is worth towards min_bytes. positions: where each partition that was read was
    left. failed: one of them had an error, which is answered at once; a partition that is unknown is no
    reason not to wait for the others.
    """

    broker: Broker
    request: FetchRequest
    by_id: bool
    max_bytes: int = 0
    bytes_read: int = 0
    counted_bytes: int = 0
    positions: list[Position] = field(default_factory=list)
    failed: bool = False

    def __post_init__(self) -> None:
        self.max_bytes = min(self.request.max_bytes, self.broker.config.fetch_max_bytes)

    def read(self) -> FetchResponse:
        return FetchResponse(
            responses=tuple(
                FetchableTopicResponse(
                    topic=asked.topic, topic_id=asked.topic_id, partitions=tuple(self._read_topic(asked))
                )
                for asked in self.request.topics
                if asked.partitions
            )
        )

    def _read_topic(self, asked: FetchTopic) -> Iterator[PartitionData]:
        cluster = self.broker.cluster
        topic: Topic | None
        if self.by_id:
            topic, error = cluster.topic_by_id(asked.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic, error = cluster.topics.get(asked.topic), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for wanted in asked.partitions:
            partition = topic.partition(wanted.partition) if topic else None
            if partition is None:
                unknown = error if topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                yield _refusal(wanted, unknown, ())
                continue
            read = self._read_partition(partition, wanted)
            self.failed = self.failed or bool(read.error_code) or read.diverging_epoch.epoch >= 0
            yield read

    def _read_partition(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        fault = self._fault_in_request(partition, wanted)
        if fault is not ErrorCode.NONE:
            return _refusal(wanted, fault)
        start, high_watermark, end, _ = self.broker.log.offsets(partition.partition_no)
        records, diverging_epoch = b"", NO_EPOCH_END
        if start <= wanted.fetch_offset <= end:
            records = self._records(partition, wanted, high_watermark)
        elif wanted.last_fetched_epoch >= 0 and wanted.fetch_offset > end:
            diverging_epoch = EpochEndOffset(epoch=partition.leader_epoch, end_offset=end)
        else:
            return _refusal(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        return PartitionData(
            partition_index=wanted.partition,
            error_code=ErrorCode.NONE,
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start_offset=start,
            diverging_epoch=diverging_epoch,
            aborted_transactions=() if self.request.isolation_level == READ_COMMITTED else None,
            records=records,
        )

    def _records(self, partition: Partition, wanted: FetchPartition, high_watermark: int) -> bytes:
        limit = max(0, min(wanted.partition_max_bytes, self.max_bytes - self.bytes_read))
        position = Position(partition.partition_no, wanted.fetch_offset, limit)
        self.positions.append(position)
        if wanted.fetch_offset >= high_watermark or (limit == 0 and self.bytes_read):
            return b""
        records = self.broker.log.read(
            partition.partition_no, wanted.fetch_offset, limit, min_one=not self.bytes_read
        )
        self.bytes_read += len(records)
        enough = self.request.min_bytes <= 1
        self.counted_bytes += len(records) if enough else position.count(records, high_watermark)
        return records

    def _fault_in_request(self, partition: Partition, wanted: FetchPartition) -> ErrorCode:
        """Why the partition is not read, whatever its log holds."""
        request = self.request
        if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # only consumers fetch from here
        if request.max_bytes < 0 or wanted.partition_max_bytes < 0:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        error = fault_in_leadership(self.broker, partition, max(NO_EPOCH, wanted.current_leader_epoch))
        if error is not ErrorCode.NONE:
            return error
        if wanted.last_fetched_epoch > partition.leader_epoch:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return ErrorCode.NONE
