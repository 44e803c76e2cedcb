"""Writes the markers that end a transaction: a control batch in the log of each of its partitions.

Markers are written again until they are durable. The other partitions do not wait for one that can never get
its marker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Protocol

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from kshim.cluster import GROUP_METADATA_TOPIC
from kshim.coordination.transactions.transaction import TopicPartition
from kshim.requests import Broker
from kshim.requests.later import if_not_stored
from kshim.storage.clock import Clock
from schemas.error_code import ErrorCode
from schemas.records.end_txn_marker import EndTxnMarker

RETRY_MS = 1_000
"""How long to wait before a marker that could not be written is written again."""
MOST_NAMED = 5
"""Partitions that a line of the log names."""

ENDED_WITHOUT = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the topic is gone",
    ErrorCode.INVALID_PRODUCER_EPOCH: "a newer producer has written there",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a newer coordinator has written there",
}
"""Why a partition may never get its marker: the transaction is over there, or will be without it."""

logger = logging.getLogger(__name__)


class WriteMarker(Protocol):
    """`write_marker` of one broker."""

    def __call__(
        self, topic_name: str, index: int, marker: EndTxnMarker, transaction_version: int
    ) -> Deferred[ErrorCode]: ...


class Markers:
    """The markers of one transaction."""

    def __init__(
        self,
        transactional_id: str,
        write: Callable[[str, int], Deferred[ErrorCode]],
        clock: Clock,
        is_wanted: Callable[[], bool],
    ) -> None:
        """write: writes a marker in a partition; fires as `write_marker` does. is_wanted: whether this
        coordinator still has to write them.
        """
        self._transactional_id = transactional_id
        self._write = write
        self._clock = clock
        self._is_wanted = is_wanted
        self._left: set[TopicPartition] = set()
        self._done: Deferred[None] = Deferred()
        self._unmarked: dict[ErrorCode, list[TopicPartition]] = {}
        """Partitions that got no marker in this turn of the reactor, and are not logged yet."""

    def write(self, partitions: Collection[TopicPartition]) -> Deferred[None]:
        """Fires when each partition has its marker or needs none; never, if they are no longer wanted."""
        self._left.update(partitions)
        for partition in sorted(partitions):
            self._attempt(partition)
        if not partitions:
            self._done.callback(None)
        return self._done

    def _attempt(self, partition: TopicPartition) -> None:
        if self._is_wanted():
            written = maybeDeferred(self._write, *partition)
            written.addErrback(self._failed, partition)
            written.addCallback(self._written, partition)

    def _failed(self, failure: Failure, partition: TopicPartition) -> ErrorCode:
        """Log a fault of ours, and try again: it must not leave the transaction open for ever."""
        logger.error(
            "transactional id %s: no marker in %s-%d: %s", self._transactional_id, *partition, failure
        )
        return ErrorCode.UNKNOWN_SERVER_ERROR

    def _written(self, error: ErrorCode, partition: TopicPartition) -> None:
        if error is not ErrorCode.NONE:
            self._warn_later(error, partition)
            if error not in ENDED_WITHOUT:
                self._clock.callLater(RETRY_MS / 1000, self._attempt, partition)
                return
        self._left.discard(partition)
        if not self._left:
            self._done.callback(None)

    def _warn_later(self, error: ErrorCode, partition: TopicPartition) -> None:
        """Log the partition together with the others of this turn: there may be thousands."""
        if not self._unmarked:
            self._clock.callLater(0, self._warn)
        self._unmarked.setdefault(error, []).append(partition)

    def _warn(self) -> None:
        """Write one line for each error."""
        unmarked, self._unmarked = self._unmarked, {}
        for error, partitions in unmarked.items():
            named = [f"{topic}-{index}" for topic, index in partitions[:MOST_NAMED]]
            more = len(partitions) - len(named)
            logger.warning(
                "transactional id %s: no marker in %s%s (%s), %s",
                self._transactional_id,
                ", ".join(named),
                f" and {more} more" if more else "",
                error.name,
                ENDED_WITHOUT.get(error, "trying again"),
            )


def write_marker(
    broker: Broker, topic_name: str, index: int, marker: EndTxnMarker, transaction_version: int = 0
) -> Deferred[ErrorCode]:
    """End the marker's transaction in one partition. Fires when that is durable, or with the error.

    transaction_version: that of the transaction, see `producing.rules.check_marker`. In `__consumer_offsets`
    the group coordinator writes the marker, and makes the transaction's offsets count or forgets them.
    UNKNOWN_TOPIC_OR_PARTITION if the topic is gone; INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED
    if the marker comes too late; KAFKA_STORAGE_ERROR.
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
