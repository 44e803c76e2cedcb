"""Loads the shards of coordinators: replays their journals one after the other, a little at a time.

A large server takes seconds to load everything. Meanwhile requests are answered, and each shard is served as
soon as it is loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from twisted.internet.defer import Deferred

from kshim.coordination.alarm import LONGEST_TURN_MS
from kshim.coordination.decision import Decision
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.storage.clock import Call, Clock
from kshim.storage.interfaces import NO_PRODUCER, Journal, JournalBatch, StorageDamaged
from schemas.message import MalformedMessage
from schemas.records.end_txn_marker import EndTxnMarker

logger = logging.getLogger(__name__)


class Leader(NamedTuple):
    """The broker that leads a shard, and its leader epoch; a later leader has a greater epoch."""

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
        """Decode and apply stored records, with the same effect as `replay`; return the keys of unknown
        kinds, which are skipped. Raises MalformedMessage.
        """

    def replay(self, shard: int, records: Iterable[Any], producer: ProducerIdAndEpoch | None) -> None:
        """Apply the records of a decision in `shard`; calls come in the order of its log.

        producer: the producer whose transaction the records are part of, if any.
        """

    def revive(self, shard: int) -> Iterator[None]:
        """Prepare to serve `shard` once all its records are replayed, a step for each item."""

    def replay_marker(self, shard: int, marker: EndTxnMarker) -> None:
        """Apply the end of a transaction; calls come in the order of the log, like those of `replay`."""


class Loading:
    """One shard being loaded, until its journal is fully replayed."""

    def __init__(self, shard: int, leader: Leader, coordinator: Loadable, journal: Journal) -> None:
        self.shard = shard
        self.leader = leader
        self.decisions: list[Callable[[int, int], Decision]] = []
        """Each is called with (shard, now_ms) as soon as the shard is served."""
        self.served: Deferred[None] = Deferred()
        """Fires when the shard is served, or given up before that; fails with StorageError if the journal
        cannot be read.
        """
        self.prepared: Deferred[None] | None = None
        """Set when the journal is replayed: fires when the shard can be served; None for at once."""
        self.is_wanted = False
        """True if a client waits for the shard."""
        self._coordinator = coordinator
        self._journal = journal
        self._steps = self._replayed()
        coordinator.begin_load(shard, leader.node_id)

    def replay(self, is_long_enough: Callable[[], bool]) -> bool:
        """Replay until `is_long_enough()`; return True if the shard can be served. Raises StorageError."""
        return all(not is_long_enough() for _ in self._steps)

    def _replayed(self) -> Iterator[None]:
        for entry in self._journal.load(self.shard):
            if isinstance(entry, EndTxnMarker):
                self._coordinator.replay_marker(self.shard, entry)
            else:
                self._load(entry)
            yield
        yield from self._coordinator.revive(self.shard)

    def _load(self, batch: JournalBatch) -> None:
        """Apply a batch; an unknown kind of record is skipped, as in Kafka. Raises StorageDamaged."""
        name = f"{self._coordinator.topic}-{self.shard}"
        producer = None if batch.producer == NO_PRODUCER else ProducerIdAndEpoch(*batch.producer)
        try:
            unknown = self._coordinator.load(self.shard, batch.records, producer)
        except MalformedMessage as error:
            if batch.skips_unreadable:
                self._load_one_by_one(batch, name)
                return
            raise StorageDamaged(f"{name} holds a corrupt record: {error}") from error
        for key in unknown:
            logger.warning("%s: skipped a record of an unknown kind: %s", name, key.hex())

    def _load_one_by_one(self, batch: JournalBatch, name: str) -> None:
        """Apply all records of a batch that can be read. Some may have been applied already, to the same
        effect.
        """
        for record in batch.records:
            try:
                self._load(JournalBatch((record,), batch.producer))
            except StorageDamaged as error:
                logger.error("%s: skipped a record: %s", name, error)


GoOn = Callable[[Callable[[], bool]], bool]
"""Continues to load a shard until the given function returns True; returns True if loading has ended."""


class Loader:
    """Loads shards one at a time, for at most 10 ms in a turn of the reactor, so that requests are not
    starved. Shards that a client waits for come first, then the others in the order in which they were added.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._queue: dict[Loading, GoOn] = {}
        self._until_s = 0.0
        """When the present turn of loading is over, in seconds."""
        self._next_turn: Call | None = None
        """The scheduled call of the next turn. There is one while a shard waits, or this turn's time is used
        up.
        """
        self._is_at_work = False
        self._done: list[Deferred[None]] = []

    def add(self, loading: Loading, go_on: GoOn) -> None:
        """Load a shard: at once if nothing else is loading and this turn has time left, else later."""
        self._queue[loading] = go_on
        self._sort()
        if self._next_turn is None and not self._is_at_work:
            if self._is_over():
                self._begin_turn()
            self._work()

    def add_later(self, loading: Loading, go_on: GoOn) -> None:
        """Load a shard from the next turn on."""
        self._queue[loading] = go_on
        self._schedule()

    def want(self, loading: Loading) -> None:
        """Move a shard that a client has asked for before those that no client has asked for."""
        if not loading.is_wanted:
            loading.is_wanted = True
            self._sort()

    def remove(self, loading: Loading) -> None:
        """Stop loading a shard."""
        self._queue.pop(loading, None)
        if not self._queue and not self._is_at_work:
            self._rest()

    def when_done(self) -> Deferred[None]:
        """Return a Deferred that fires as soon as nothing is left to load."""
        done: Deferred[None] = Deferred()
        self._done.append(done)
        if not self._queue:
            self._rest()
        return done

    def _sort(self) -> None:
        self._queue = dict(sorted(self._queue.items(), key=lambda each: not each[0].is_wanted))

    def _take_turn(self) -> None:
        self._next_turn = None
        if self._queue:
            self._begin_turn()
            self._work()

    def _begin_turn(self) -> None:
        self._until_s = self.clock.seconds() + LONGEST_TURN_MS / 1000

    def _is_over(self) -> bool:
        return self.clock.seconds() >= self._until_s

    def _work(self) -> None:
        self._is_at_work = True
        while self._queue:
            loading, go_on = next(iter(self._queue.items()))
            try:
                has_ended = go_on(self._is_over)
            except Exception:
                logger.exception("internal error: shard %d cannot be loaded", loading.shard)
                has_ended = True
            if has_ended:
                self._queue.pop(loading, None)
            if self._is_over():
                break
        self._is_at_work = False
        if not self._queue:
            self._rest()
        if self._queue or self._is_over():
            self._schedule()

    def _schedule(self) -> None:
        if self._next_turn is None:
            self._next_turn = self.clock.callLater(0, self._take_turn)

    def _rest(self) -> None:
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        done, self._done = self._done, []
        for each in done:
            each.callback(None)
