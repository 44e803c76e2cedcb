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
    """The part of a coordinator that is told what its journal holds."""

    @property
    def topic(self) -> str:
        """Whose partitions are the shards."""

    @property
    def partitions(self) -> int:
        """How many shards there are."""

    def begin_load(self, shard: int, node_id: int) -> None:
        """Let the broker `node_id` take over `shard`, empty and loading: requests for it are told so."""

    def decode(self, key: bytes, value: bytes | None) -> Any | None:
        """The record of a key and value; None for a kind of record that is not known. Raises
        MalformedMessage.
        """

    def replay(self, shard: int, records: Iterable[Any], producer: ProducerIdAndEpoch | None) -> None:
        """Apply records of `shard` in the order of its log, while loading and after each decision alike.

        `producer`: whose transaction they are part of.
        """

    def replay_marker(self, shard: int, marker: EndTxnMarker) -> None:
        """Apply the end of a transaction, in the order of the log as well."""


class Loading:
    """One shard being loaded, until its journal is fully replayed.

    decisions: what is to be decided as soon as it is served. served: fires when the shard is served, or is
    not to be any more; errbacks StorageError when it cannot be read.
    """

    def __init__(self, shard: int, leader: Leader, coordinator: Loadable, journal: Journal) -> None:
        self.shard = shard
        self.leader = leader
        self.decisions: list[Callable[[int, int], Decision]] = []
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
                producer = None if entry.producer == NO_PRODUCER else ProducerIdAndEpoch(*entry.producer)
                self._coordinator.replay(self.shard, self._records(entry), producer)
            if is_long_enough():
                return False
        return True

    def cancel(self) -> None:
        """It is not to be led any more."""
        if self.call is not None:
            self.call.cancel()
        self.served.callback(None)

    def _records(self, batch: JournalBatch) -> Iterator[Any]:
        """Records from bytes. An unknown kind is skipped, as in Kafka; what is corrupt, a StorageError."""
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
