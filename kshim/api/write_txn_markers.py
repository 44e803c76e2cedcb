"""WriteTxnMarkers (27): end transactions in the partitions that they wrote to (KIP-98).

kshim's coordinator does not use it. Administrators send it for a transaction that hangs in a partition
because its coordinator has forgotten it (KIP-664).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kshim.answering import Broker
from kshim.callers import RequestContext
from kshim.cluster.leadership import fault_in_leadership
from kshim.coordination.transactions.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kshim.producing.markers import write_marker
from kshim.turns.promise import together
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from schemas.records.end_txn_marker import EndTxnMarker

PLACES_AT_ONCE = 100


class Place(NamedTuple):
    """A marker, and the partition to write it to."""

    marker: WritableTxnMarker
    topic_name: str
    partition_index: int


async def write_txn_markers(
    broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write each marker independently. A marker without a producer id or epoch makes the whole request fail,
    as in Apache Kafka.
    """
    now_ms = broker.now_ms()
    places = [
        Place(entry, topic.name, index)
        for entry in request.markers
        for topic in entry.topics
        for index in topic.partition_indexes
    ]
    if any(_is_nobody_s(place.marker) and _fault(broker, place) is ErrorCode.NONE for place in places):
        return _response(places, [ErrorCode.UNKNOWN_SERVER_ERROR] * len(places))

    async def write(some: Sequence[Place]) -> Iterable[ErrorCode]:
        return await together(_write(broker, place, now_ms) for place in some)

    return _response(places, await in_pieces(broker.rounds, context.turn, places, write, PLACES_AT_ONCE))


def _response(places: Sequence[Place], errors: Iterable[ErrorCode]) -> WriteTxnMarkersResponse:
    """Return the response: one entry for each producer, with all its topics."""
    by_producer: dict[int, dict[str, dict[int, ErrorCode]]] = {}
    for (marker, topic_name, index), error in zip(places, errors, strict=True):
        by_producer.setdefault(marker.producer_id, {}).setdefault(topic_name, {})[index] = error
    return WriteTxnMarkersResponse(markers=Mapped(_result, tuple(by_producer.items())))


def _result(item: tuple[int, dict[str, dict[int, ErrorCode]]]) -> WritableTxnMarkerResult:
    producer_id, topics = item
    return WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                    for index, error in partitions.items()
                ),
            )
            for name, partitions in topics.items()
        ),
    )


def _is_nobody_s(marker: WritableTxnMarker) -> bool:
    return marker.producer_id == NO_PRODUCER_ID or marker.producer_epoch == NO_PRODUCER_EPOCH


def _fault(broker: Broker, place: Place) -> ErrorCode:
    topic = broker.cluster.topics.get(place.topic_name)
    partition = None if topic is None else topic.partition(place.partition_index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return fault_in_leadership(broker.node_id, partition)


async def _write(broker: Broker, place: Place, now_ms: int) -> ErrorCode:
    error = _fault(broker, place)
    if error is not ErrorCode.NONE:
        return error
    entry, topic_name, index = place
    marker = EndTxnMarker(
        entry.producer_id,
        entry.producer_epoch,
        committed=entry.transaction_result,
        coordinator_epoch=entry.coordinator_epoch,
        timestamp_ms=now_ms,
    )
    return await write_marker(broker, topic_name, index, marker, entry.transaction_version)
