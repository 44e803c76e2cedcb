"""Loading one shard of a coordinator: its journal is replayed a little at a time.

A shard of many offsets takes seconds to load, in which other shards are served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from twisted.internet.defer import Deferred

from kshim.coordination.decision import Decision
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.storage.interfaces import NO_PRODUCER, Journal, JournalBatch, StorageDamaged
from schemas.message import MalformedMessage
from schemas.records.end_txn_marker import EndTxnMarker

logger = logging.getLogger(__name__)


class Leader(NamedTuple):
    """Which broker leads a shard, and since when: a later leader has a greater epoch."""

    node_id: int = 0
    leader_epoch: int = 0


class Loadable(Protocol):
    """The part of a coordinator that replays its journal."""

    @property
    def topic(self) -> str:
        """The topic whose partitions are the shards."""

    @property
    def partitions(self) -> int:
        """How many shards there are."""

    def begin_load(self, shard: int, node_id: int) -> None:
        """Begin to load `shard` for the broker `node_id`; it is empty, and refuses requests until loaded."""

    def decode(self, key: bytes, value: bytes | None) -> Any | None:
        """The record of a key and value; None for a kind of record that is not known. Raises
        MalformedMessage.
        """

    def replay(self, shard: int, records: Iterable[Any], producer: ProducerIdAndEpoch | None) -> None:
        """Apply records of `shard` in the order of its log, while loading and after each decision alike.

        producer: the producer whose transaction they are part of, if any.
        """

    def replay_marker(self, shard: int, marker: EndTxnMarker) -> None:
        """Apply the end of a transaction, in the order of the log as well."""


class Loading:
    """One shard being loaded, until its journal is fully replayed."""

    def __init__(self, shard: int, leader: Leader, coordinator: Loadable, journal: Journal) -> None:
        self.shard = shard
        self.leader = leader
        self.decisions: list[Callable[[int, int], Decision]] = []
        """Each is called with (shard, now_ms) as soon as the shard is served."""
        self.served: Deferred[None] = Deferred()
        """Fires when the shard is served, or given up before that; errbacks StorageError if it cannot be
        read.
        """
        self.call: Any = None
        """The scheduled next turn of loading."""
        self._coordinator = coordinator
        self._journal = journal
        self._entries: Iterator[JournalBatch | EndTxnMarker] | None = None
        coordinator.begin_load(shard, leader.node_id)

    def replay(self, is_long_enough: Callable[[], bool]) -> bool:
        """Replay until `is_long_enough()`; return whether the journal has ended. Raises StorageError."""
        if self._entries is None:
            self._entries = self._journal.load(self.shard)
        for entry in self._entries:
            if isinstance(entry, EndTxnMarker):
                self._coordinator.replay_marker(self.shard, entry)
            else:
                producer = None if entry.producer == NO_PRODUCER else ProducerIdAndEpoch(*entry.producer)
                self._coordinator.replay(self.shard, self._records(entry), producer)
            if is_long_enough():
                return False
        return True

    def cancel(self) -> None:
        """Stop loading: the shard is given up."""
        if self.call is not None:
            self.call.cancel()
        self.served.callback(None)

    def _records(self, batch: JournalBatch) -> Iterator[Any]:
        """Decode records; an unknown kind is skipped, as in Kafka. Raises StorageError for a corrupt one."""
        name = f"{self._coordinator.topic}-{self.shard}"
        for key, value in batch.records:
            try:
                record = self._coordinator.decode(key, value)
            except MalformedMessage as error:
                raise StorageDamaged(f"{name} holds a corrupt record: {error}") from error
            if record is None:
                logger.warning("%s: skipped a record of an unknown kind: %s", name, key.hex())
            else:
                yield record
