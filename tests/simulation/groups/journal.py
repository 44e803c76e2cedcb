"""A journal that all brokers share; at times it is slow, and at times it loses appends.

It keeps its contract: a shard's records become durable in order, and nothing is kept of or behind a failed
append. A new leader of a shard shuts the old one out: of the appends still in flight, a first part becomes
durable and the rest is lost. The old leader learns it too late to matter.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from twisted.internet.defer import Deferred, fail, succeed

from kshim.storage.interfaces import NO_PRODUCER, JournalBatch, StorageError
from schemas.records.end_txn_marker import EndTxnMarker
from tests.simulation.groups.clock import SimulatedClock

Entry = JournalBatch | EndTxnMarker


@dataclass(eq=False)
class Write:
    """One append in flight."""

    entry: Entry
    due_ms: int
    fails: bool
    settled: Deferred[None] = field(default_factory=Deferred)


class SimulatedJournal:
    """The durable entries, and the appends in flight. `watch` is called with each entry that becomes
    durable."""

    def __init__(self, clock: SimulatedClock, chance: Random, watch: Callable[[int, Entry], None]) -> None:
        self.slowest_ms = 0
        self.failing = 0
        """How many of the next appends will fail."""
        self.unreadable = 0
        """How many of the next loads will fail."""
        self.failed = 0
        self.fired: list[Deferred[None]] = []
        self._clock = clock
        self._chance = chance
        self._watch = watch
        self._durable: dict[int, list[Entry]] = defaultdict(list)
        self._writes: dict[int, deque[Write]] = defaultdict(deque)

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        *,
        producer: tuple[int, int] = NO_PRODUCER,
    ) -> Deferred[None]:
        return self._write(shard, JournalBatch(records, producer))

    def end_transaction(self, shard: int, marker: EndTxnMarker) -> Deferred[None]:
        return self._write(shard, marker)

    def _write(self, shard: int, entry: Entry) -> Deferred[None]:
        now_ms = self._clock.now_ms
        writes = self._writes[shard]
        fails = self.failing > 0
        self.failing -= fails
        if not writes and not self.slowest_ms:
            return self._at_once(shard, entry, fails)
        due_ms = now_ms + self._chance.randint(0, self.slowest_ms)
        if writes:
            due_ms = max(due_ms, writes[-1].due_ms)
        write = Write(entry, due_ms, fails)
        writes.append(write)
        self._clock.after(due_ms - now_ms, self._settle, shard, write)
        return write.settled

    def load(self, shard: int) -> Iterator[Entry]:
        if self.unreadable:
            self.unreadable -= 1
            raise StorageError("not readable")
        return iter(tuple(self._durable[shard]))

    def is_settled(self, shard: int) -> bool:
        return not self._writes[shard]

    def shut_out(self, shard: int) -> None:
        """Decide which appends of a replaced leader become durable."""
        lost = self._writes.pop(shard, deque())
        for _ in range(self._chance.randint(0, len(lost))):
            if lost[0].fails:
                break
            write = lost.popleft()
            self._keep(shard, write.entry)
            self._fire(write.settled).callback(None)
        self._lose(lost)

    def _at_once(self, shard: int, entry: Entry, fails: bool) -> Deferred[None]:
        if fails:
            self.failed += 1
            return self._fire(fail(StorageError("the disk is full")))
        self._keep(shard, entry)
        return self._fire(succeed(None))

    def _settle(self, shard: int, write: Write) -> None:
        writes = self._writes[shard]
        if write not in writes:
            return
        assert writes[0] is write
        if not write.fails:
            writes.popleft()
            self._keep(shard, write.entry)
            self._fire(write.settled).callback(None)
            return
        lost = list(writes)
        writes.clear()
        self.failed += len(lost)
        self._lose(lost)

    def _lose(self, lost: Collection[Write]) -> None:
        for write in lost:
            self._fire(write.settled).errback(StorageError("the disk is full"))

    def _keep(self, shard: int, entry: Entry) -> None:
        self._durable[shard].append(entry)
        self._watch(shard, entry)

    def _fire(self, settled: Deferred[None]) -> Deferred[None]:
        self.fired.append(settled)
        return settled
