"""Loading one shard of a coordinator: its journal is replayed a little at a time.

A shard of many offsets takes seconds to load, in which other shards are served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
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

    def load(
        self, shard: int, records: Iterable[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch | None
    ) -> Sequence[bytes]:
        """Apply the keys and values of stored records as `replay` applies records; return the keys of unknown
        kinds, which are skipped. Raises MalformedMessage.
        """

    def replay(self, shard: int, records: Iterable[Any], producer: ProducerIdAndEpoch | None) -> None:
        """Apply records of `shard` in the order of its log, after each decision.

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
                self._load(entry)
            if is_long_enough():
                return False
        return True

    def cancel(self) -> None:
        """Stop loading: the shard is given up."""
        if self.call is not None:
            self.call.cancel()
        self.served.callback(None)

    def _load(self, batch: JournalBatch) -> None:
        """Apply a batch; an unknown kind of record is skipped, as in Kafka. Raises StorageDamaged."""
        name = f"{self._coordinator.topic}-{self.shard}"
        producer = None if batch.producer == NO_PRODUCER else ProducerIdAndEpoch(*batch.producer)
        try:
            unknown = self._coordinator.load(self.shard, batch.records, producer)
        except MalformedMessage as error:
            raise StorageDamaged(f"{name} holds a corrupt record: {error}") from error
        for key in unknown:
            logger.warning("%s: skipped a record of an unknown kind: %s", name, key.hex())
