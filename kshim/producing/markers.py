"""Writes the marker that ends a transaction in one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kshim.cluster import GROUP_METADATA_TOPIC
from kshim.storage.interfaces import StorageError
from schemas.error_code import ErrorCode

if TYPE_CHECKING:
    from kshim.cluster import Cluster
    from kshim.coordination.interfaces import Groups
    from kshim.producing.appends import ProducerAppends
    from schemas.records.end_txn_marker import EndTxnMarker


class Marking(Protocol):
    """The broker that writes markers."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def producers(self) -> ProducerAppends: ...


async def write_marker(
    broker: Marking, topic_name: str, index: int, marker: EndTxnMarker, transaction_version: int = 0
) -> ErrorCode:
    """End the marker's transaction in one partition; return NONE when the marker is durable.

    Return UNKNOWN_TOPIC_OR_PARTITION if the topic is gone, INVALID_PRODUCER_EPOCH or
    TRANSACTION_COORDINATOR_FENCED if the marker comes too late, and KAFKA_STORAGE_ERROR if it cannot be
    stored. In `__consumer_offsets` the group coordinator writes the marker; the transaction's offsets then
    count, or are forgotten. transaction_version: the transaction's; see `rules.check_marker`.
    """
    topic = broker.cluster.topics.get(topic_name)
    partition = None if topic is None else topic.partition(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic_name == GROUP_METADATA_TOPIC:
        return await broker.groups.write_marker(index, marker)
    appended = broker.producers.append_marker(
        partition.partition_no,
        marker,
        leader_epoch=partition.leader_epoch,
        now_ms=marker.timestamp_ms,
        transaction_version=transaction_version,
    )
    if isinstance(appended, ErrorCode):
        return appended
    try:
        await appended
    except StorageError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
