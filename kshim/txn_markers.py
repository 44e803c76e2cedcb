"""The control batch that ends a transaction in one partition, written where that partition's records are."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed

from kshim.api.later import if_not_stored
from kshim.cluster import GROUP_METADATA_TOPIC
from kshim.context import Broker
from schemas.end_txn_marker import EndTxnMarker
from schemas.error_code import ErrorCode


def write_marker(
    broker: Broker, topic_name: str, index: int, marker: EndTxnMarker, transaction_version: int = 0
) -> Deferred[ErrorCode]:
    """End the marker's transaction in one partition. Fires when that is durable, or with the error.

    transaction_version: the one that the transaction was made with, see `ProducerAppends.append_marker`.
    In `__consumer_offsets` it is the group coordinator that makes the offsets of the transaction count, or
    forgets them. UNKNOWN_TOPIC_OR_PARTITION where the topic is gone; INVALID_PRODUCER_EPOCH or
    TRANSACTION_COORDINATOR_FENCED where it comes too late; KAFKA_STORAGE_ERROR.
    """
    topic = broker.cluster.topics.get(topic_name)
    partition = None if topic is None else topic.partition(index)
    if partition is None:
        return succeed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic_name == GROUP_METADATA_TOPIC:
        return broker.groups.write_marker(index, marker)
    appended = broker.producers.append_marker(
        partition.partition_no,
        marker,
        leader_epoch=partition.leader_epoch,
        now_ms=marker.timestamp_ms,
        transaction_version=transaction_version,
    )
    if isinstance(appended, ErrorCode):
        return succeed(appended)
    not_stored = if_not_stored(lambda: ErrorCode.KAFKA_STORAGE_ERROR)
    return appended.addCallbacks(lambda _: ErrorCode.NONE, not_stored)
