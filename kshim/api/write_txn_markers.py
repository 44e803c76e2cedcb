"""WriteTxnMarkers (27): end transactions in the partitions that they wrote to (KIP-98).

The coordinator of kshim needs no request for that. Administrators send it, for a transaction that hangs in a
partition because its coordinator has forgotten it (KIP-664).
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kshim.api.later import gather
from kshim.api.leadership import fault_in_leadership
from kshim.context import Broker, RequestContext
from kshim.txn_markers import write_marker
from schemas.end_txn_marker import EndTxnMarker
from schemas.error_code import ErrorCode
from schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def write_txn_markers(
    broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Deferred[WriteTxnMarkersResponse]:
    """Each partition is answered for itself, in the order of the request."""
    now_ms = broker.now_ms()
    written = [
        _write(broker, topic.name, index, entry, now_ms)
        for entry in request.markers
        for topic in entry.topics
        for index in topic.partition_indexes
    ]

    def respond(errors: list[ErrorCode]) -> WriteTxnMarkersResponse:
        left = iter(errors)
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=entry.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(left))
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in entry.topics
                    ),
                )
                for entry in request.markers
            )
        )

    return gather(written, respond)


def _write(
    broker: Broker, topic_name: str, index: int, entry: WritableTxnMarker, now_ms: int
) -> ErrorCode | Deferred[ErrorCode]:
    topic = broker.cluster.topics.get(topic_name)
    partition = None if topic is None else topic.partition(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    error = fault_in_leadership(broker, partition)
    if error is not ErrorCode.NONE:
        return error
    marker = EndTxnMarker(
        entry.producer_id,
        entry.producer_epoch,
        committed=entry.transaction_result,
        coordinator_epoch=entry.coordinator_epoch,
        timestamp_ms=now_ms,
    )
    return write_marker(broker, topic_name, index, marker, entry.transaction_version)
