"""Loading one shard of the group coordinator: its journal is replayed a little at a time.

A shard of many offsets takes seconds to load, in which other shards are served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred

from kshim.coordinator.coordinator import Coordinator
from kshim.coordinator.decision import Record
from kshim.coordinator.fencing import Producer
from kshim.storage.interfaces import NO_PRODUCER, Journal, JournalBatch, StorageError
from schemas.end_txn_marker import EndTxnMarker
from schemas.group_metadata_log import UnknownKey, decode_key, decode_value
from schemas.message import MalformedMessage

logger = logging.getLogger("kshim.coordinator")


class Leader(NamedTuple):
    """Which broker leads a shard, and since when: a later leader has a greater epoch."""

    node_id: int = 0
    leader_epoch: int = 0


class Loading:
    """A shard from the moment it is to be led until all that is durable of it is known.

    deleted_topics: those that were deleted meanwhile, whose offsets are to go in the end. served: fires when
    the shard is served, or is not to be any more; errbacks StorageError when it cannot be read.
    """

    def __init__(self, shard: int, leader: Leader, coordinator: Coordinator, journal: Journal) -> None:
        self.shard = shard
        self.leader = leader
        self.deleted_topics: set[str] = set()
        self.served: Deferred[None] = Deferred()
        self.call: Any = None
        self._coordinator = coordinator
        self._journal = journal
        self._entries: Iterator[JournalBatch | EndTxnMarker] | None = None
        coordinator.begin_load(shard, leader.node_id)

    def replay(self, is_long_enough: Callable[[], bool]) -> bool:
        """Go on until `is_long_enough`; whether all is known now. Raises StorageError."""
        if self._entries is None:
            self._entries = self._journal.load(self.shard)
        for entry in self._entries:
            if isinstance(entry, EndTxnMarker):
                self._coordinator.replay_marker(self.shard, entry)
            else:
                producer = None if entry.producer == NO_PRODUCER else Producer(*entry.producer)
                self._coordinator.replay(self.shard, _records(entry, self.shard), producer)
            if is_long_enough():
                return False
        return True

    def cancel(self) -> None:
        """It is not to be led any more."""
        if self.call is not None:
            self.call.cancel()
        self.served.callback(None)


def _records(batch: JournalBatch, shard: int) -> Iterator[Record]:
    """Records from bytes. An unknown kind of key is skipped, as in Kafka; what is corrupt, a StorageError."""
    for key_bytes, value_bytes in batch.records:
        try:
            key = decode_key(key_bytes)
            if isinstance(key, UnknownKey):
                logger.warning("__consumer_offsets-%d: skipped a record with %s", shard, key)
                continue
            yield Record(key, decode_value(key, value_bytes))
        except MalformedMessage as error:
            raise StorageError(f"__consumer_offsets-{shard} holds a corrupt record: {error}") from error
