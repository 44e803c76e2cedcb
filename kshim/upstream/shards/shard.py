"""One shard in this process: carries out its `Takeover` and its `Tenure`."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from twisted.internet.defer import Deferred, DeferredSemaphore, fail
from twisted.python.failure import Failure

from kshim.callers.once import Once
from kshim.storage.clock import Clock, after
from kshim.storage.interfaces import NO_PRODUCER, StorageDamaged, StorageError
from kshim.upstream.shards.answers import SHORT_OF, Answer, Meaning
from kshim.upstream.shards.batch_limit import DEFAULT_BYTES, TOO_LARGE, BatchLimit
from kshim.upstream.shards.partitions import FETCH_BYTES, Fetched
from kshim.upstream.shards.stored import encode_batch, read_batches
from kshim.upstream.shards.takeover import Append, GiveUp, Lead, Read, State, Takeover, Wait
from kshim.upstream.shards.tenure import Entry, Marker, Outgoing, Tenure, Token
from kshim.upstream.shards.transactions import ShardTransactions
from schemas.internal_topics.shard_claim import KEY, ShardClaim, encode_claim

logger = logging.getLogger(__name__)

AGAIN_S = 0.1
"""The pause before the same request is sent again."""
LOST_S = (0.05, 0.5)
"""The least and longest pause before a shard is claimed again that another process has claimed first."""
OVERTAKEN_S = 1.0
"""The pause before a lost shard is claimed again: time for a frozen process to be reassigned."""
MARKERS_BYTES = 16 * 1024
"""Limit of a fetch of foreign records behind the leader's; a marker has 78 bytes."""
DAMAGED_S = 60.0
"""The pause before a damaged log is read again."""
REREADS = 3
"""How often a damaged batch is fetched again before it is skipped."""
REFUSED_S = 5.0
"""The pause after a claim that the upstream has refused."""


class Log(Protocol):
    """The partitions of the journal; see `Partitions`."""

    def append(self, partition: int, batch: bytes) -> Deferred[Answer]: ...
    def end(self, partition: int) -> Deferred[int | None]: ...
    def fetch(
        self, partition: int, offset: int, max_bytes: int = FETCH_BYTES
    ) -> Deferred[Fetched | None]: ...


@dataclass(frozen=True, slots=True)
class World:
    """The parts and settings that all shards of a process share."""

    log: Log
    clock: Clock
    """The clock for pauses."""
    now_ms: Callable[[], int]
    """Returns the time of a clock that never goes back, and does not stop while the machine sleeps."""
    wall_ms: Callable[[], int]
    """Returns the timestamp for batches. The upstream replaces it by its own time."""
    new_claim: Callable[[], ShardClaim]
    led: Callable[[int], Deferred[None]]
    """Called with a shard when its leadership begins. Fires when the records that were read are loaded."""
    lost: Callable[[int], None]
    """Called with a shard when its leadership ends, before its appends fail."""
    ended: Callable[[int, Marker], None]
    """Called with a shard and a transaction's end from its log. The callee calls `Shard.ends` with it when
    the shard is loaded and all earlier decisions are appended.
    """
    once: Once
    """Keeps log lines from being repeated, for each shard and attempt."""
    limit: BatchLimit
    reading: DeferredSemaphore
    """Limits how many shards are read to their ends at a time."""


class _CalledOff(Exception):
    """A later takeover has begun, or the shard is no longer wanted."""


class Shard:
    """Leads one shard, or tries to, while it is wanted. Used only on the reactor thread."""

    def __init__(self, index: int, world: World) -> None:
        self.index = index
        self.fetched: list[bytes] = []
        """The batches that the takeover has read, until they are loaded."""
        self._world = world
        self._attempt = 0
        """Counts the takeovers; the work of an earlier one is called off."""
        self._is_wanted = False
        self._rereads = 0
        self._claim: ShardClaim | None = None
        """The claim under which the shard is led, or will be."""
        self._claimed_ms = 0
        self._tenure: Tenure | None = None
        self._waiting: dict[Token, Deferred[None]] = {}
        self.transactions = ShardTransactions()
        """The shard's transactions: those in the log once it is loaded, and those appended since."""
        self._unplaced: Counter[int] = Counter()
        """The number of appends under way of each producer's pending offsets, by producer id."""
        self._released: Deferred[None] | None = None
        """Fires when the log records that the shard is released. While it is set, nothing is answered."""

    # ---- for the journal

    @property
    def is_led(self) -> bool:
        return self._tenure is not None and self._released is None

    def may_answer(self) -> bool:
        """True if certainly no other process leads the shard."""
        return self._tenure is not None and self._tenure.is_fresh(self._world.now_ms())

    def append(self, entries: Sequence[Entry], producer: Sequence[int] = NO_PRODUCER) -> Deferred[None]:
        """See `Journal.append`."""
        if self._tenure is None:
            return fail(StorageError("the shard is not led here"))
        durable: Deferred[None] = Deferred()
        if producer != NO_PRODUCER:
            entries = self.transactions.pending(producer, entries)
            self._place(producer[0], durable)
        elif self.transactions:
            entries = [*entries, *self.transactions.removals(key for key, _ in entries)]
        self._waiting[self._tenure.append(entries, self._world.now_ms())] = durable
        self._go_on(self._tenure)
        return durable

    def _place(self, producer_id: int, durable: Deferred[None]) -> None:
        """Count an append of a producer's pending offsets, until it is done."""

        def placed(result: object) -> object:
            self._unplaced[producer_id] -= 1
            if not self._unplaced[producer_id]:
                del self._unplaced[producer_id]
            return result

        self._unplaced[producer_id] += 1
        durable.addBoth(placed)

    def ends(self, found: Marker) -> list[bytes] | None:
        """Note the end of a transaction; return the keys of offsets whose current values have to be written.

        None, and the end of the tenure, if some of the transaction's offsets may still reach the log behind
        its end: they must not count. The next takeover reads from the log which ones those are.
        """
        marker = found.marker
        if self._tenure is not None and marker.committed and self._unplaced[marker.producer_id]:
            self._tenure.end(f"producer {marker.producer_id} has ended a transaction that it still writes to")
            return None
        self.transactions.ended(marker, found.offset)
        return self.transactions.to_keep()

    def tidy(self) -> None:
        """Remove the pending offsets that are no longer needed."""
        removals = self.transactions.removals()
        if removals:
            self.append(removals).addErrback(_left_to_the_next_leader)

    # ---- for the assignment

    def want(self) -> None:
        """Lead the shard, as soon as that is possible."""
        if not self._is_wanted:
            self._is_wanted = True
            if self._tenure is None:
                self._begin()

    def release(self) -> Deferred[None]:
        """Stop leading the shard. Fires when other processes need not wait for this one."""
        self._is_wanted = False
        self._attempt += 1
        self.fetched = []
        released: Deferred[None] = Deferred()
        if self._tenure is None or self._released is not None:
            released.callback(None)
            return released
        self._released = released
        self._world.lost(self.index)
        self._go_on(self._tenure)
        return released

    def poll(self) -> None:
        """Ask for a proof that no other process leads, if one is due. Called several times in a lease."""
        if (tenure := self._tenure) is None:
            return
        now_ms = self._world.now_ms()
        tenure.pass_time(now_ms)
        self._go_on(tenure)
        if tenure is self._tenure and tenure.asks(now_ms):
            asked = self._world.log.end(self.index)
            asked.addCallback(lambda end: self._settle(tenure, tenure.was_told_end(end)))

    # ---- taking over

    def _begin(self, after_s: float = 0) -> None:
        self._attempt += 1
        Deferred.fromCoroutine(self._take_over(self._attempt, after_s)).addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        if failure.check(_CalledOff) is None:
            logger.error(
                "shard %d cannot be taken over by a fault of ours: %s", self.index, failure.getTraceback()
            )

    async def _take_over(self, attempt: int, after_s: float) -> None:
        """Try until the shard is led. Raises _CalledOff."""
        if after_s:
            await self._pause(after_s, attempt)
        while True:
            claim = self._claim = self._world.new_claim()
            takeover = Takeover(claim)
            try:
                await self._read_and_claim(takeover, attempt)
            except StorageDamaged as error:
                logger.error("shard %d is not led, and tried again in %g s: %s", self.index, DAMAGED_S, error)
                self.fetched = []
                await self._pause(DAMAGED_S, attempt)
                continue
            match takeover.wants():
                case Wait(wait_ms):
                    await self._pause(wait_ms / 1000, attempt)
                    takeover.has_waited()
                case GiveUp():
                    await self._pause(random.uniform(*LOST_S), attempt)
            match takeover.wants():
                case Lead() as lead:
                    self._lead(lead, claim)
                    return
            self.fetched = []

    async def _read_and_claim(self, takeover: Takeover, attempt: int) -> None:
        """Do what the takeover wants, until it only has to wait. Raises _CalledOff, StorageDamaged."""
        await self._world.reading.acquire()
        try:
            self._check(attempt)
            self.fetched, self._rereads = [], 0
            while takeover.state is State.READING:
                await self._read(takeover, attempt)
        finally:
            self._world.reading.release()
        # Claims do not wait for one another: one request to a broker carries those of many shards.
        while True:
            match takeover.wants():
                case Read():
                    await self._read(takeover, attempt)
                case Append(term, claim):
                    await self._append_claim(takeover, Outgoing(term, 0, (_entry(claim),)), attempt)
                case _:
                    return

    async def _read(self, takeover: Takeover, attempt: int) -> None:
        wanted = takeover.wants()
        assert isinstance(wanted, Read), wanted
        offset = wanted.offset
        fetched = await self._world.log.fetch(self.index, offset)
        self._check(attempt)
        if fetched is None:
            await self._pause(AGAIN_S, attempt)
            return
        found = list(read_batches(fetched.data, offset))
        if self._rereads < REREADS and any(each.is_damaged for each in found):
            self._rereads += 1
            await self._pause(AGAIN_S, attempt)
            return
        if found:
            self.fetched.append(fetched.data)
        takeover.was_read(found, fetched.high_watermark)
        self._log_finding(takeover.finding)

    async def _append_claim(self, takeover: Takeover, batch: Outgoing, attempt: int) -> None:
        self._claimed_ms = self._world.now_ms()
        answer = await self._world.log.append(self.index, encode_batch(batch, self._world.wall_ms()))
        self._check(attempt)
        self._tell_shortage(answer)
        takeover.was_answered(answer)
        if answer.meaning is Meaning.REFUSED:
            level = self._world.once.level(("claim", answer.error_code))
            logger.log(level, "the upstream refuses to let shards be led: %s", answer.error_code.name)
            await self._pause(REFUSED_S, attempt)
        elif answer.meaning is Meaning.AGAIN:
            await self._pause(AGAIN_S, attempt)

    async def _pause(self, for_s: float, attempt: int) -> None:
        await after(self._world.clock, for_s)
        self._check(attempt)

    def _check(self, attempt: int) -> None:
        if attempt != self._attempt:
            raise _CalledOff

    def _log_finding(self, finding: str) -> None:
        if finding:
            level = self._world.once.level(("finding", self.index))
            logger.log(level, "shard %d: %s", self.index, finding)

    # ---- leading

    def _lead(self, lead: Lead, claim: ShardClaim) -> None:
        self.transactions = ShardTransactions(lead.next_offset)
        batch_bytes = self._world.limit.batch_bytes
        self._tenure = Tenure(lead, claim.lease_ms, self._claimed_ms, _entry(claim), batch_bytes)
        logger.debug("shard %d is led here, in term %d", self.index, lead.term.producer_epoch)

        def loaded(_: object) -> None:
            self.fetched = []

        self._world.led(self.index).addCallback(loaded)
        self.poll()

    def _go_on(self, tenure: Tenure) -> None:
        """Read or send what is due; end the tenure if that is due."""
        if tenure is not self._tenure:
            return
        if (offset := tenure.to_read()) is not None:
            fetched = self._world.log.fetch(self.index, offset, MARKERS_BYTES)
            fetched.addCallback(self._was_read, tenure, offset)
        elif (batch := tenure.to_send(self._world.now_ms())) is not None:
            self._send(tenure, batch)
        elif self._released is not None and tenure.is_idle:
            assert self._claim is not None
            last = tenure.release(_entry(replace(self._claim, is_released=True)))
            said = self._world.log.append(self.index, encode_batch(last, self._world.wall_ms()))
            said.addCallback(lambda _: self._end(tenure))
        elif tenure.over:
            self._end(tenure)

    def _send(self, tenure: Tenure, batch: Outgoing) -> None:
        data = encode_batch(batch, self._world.wall_ms())
        self._world.log.append(self.index, data).addCallback(self._answered, tenure, len(data))

    def _tell_shortage(self, answer: Answer) -> None:
        if answer.error_code in SHORT_OF:
            level = self._world.once.level(("short", answer.error_code))
            logger.log(level, "the upstream appends nothing to the groups' topic: %s", answer.error_code.name)

    def _answered(self, answer: Answer, tenure: Tenure, batch_bytes: int) -> None:
        self._tell_shortage(answer)
        if answer.error_code in TOO_LARGE:
            self._shrink(batch_bytes)
        self._settle(tenure, tenure.was_answered(answer))
        if answer.meaning is Meaning.AGAIN and not tenure.over:
            self._world.clock.callLater(AGAIN_S, self._send_again, tenure)

    def _shrink(self, batch_bytes: int) -> None:
        """Lower the batch limit. It applies from the next takeover on."""
        self._world.limit.refused(batch_bytes)
        logger.log(
            self._world.once.level("too large"),
            "the upstream refuses a batch of %d bytes for the groups' topic: set its max.message.bytes to %d"
            " or more, and start kshim again",
            *(batch_bytes, DEFAULT_BYTES),
        )

    def _send_again(self, tenure: Tenure) -> None:
        if (batch := tenure.to_send_again(self._world.now_ms())) is not None:
            self._send(tenure, batch)
        else:
            self._go_on(tenure)

    def _was_read(self, fetched: Fetched | None, tenure: Tenure, offset: int) -> None:
        """Take foreign records from a fetch, then settle what follows them in the log."""
        if tenure is not self._tenure:
            return
        try:
            markers = tenure.was_read(None if fetched is None else read_batches(fetched.data, offset))
        except StorageDamaged as error:
            logger.error("shard %d cannot be read on: %s", self.index, error)
            markers = []
        self._log_finding(tenure.finding)
        for marker in markers:
            self._world.ended(self.index, marker)
        tokens = tenure.settled()
        if markers or tokens or tenure.over:
            self._settle(tenure, tokens)
        else:
            self._world.clock.callLater(AGAIN_S, self._go_on, tenure)

    def _settle(self, tenure: Tenure, tokens: list[Token]) -> None:
        if tenure is not self._tenure:
            return
        for token in tokens:
            if (durable := self._waiting.pop(token, None)) is not None:
                durable.callback(None)
        self._go_on(tenure)

    def _end(self, tenure: Tenure) -> None:
        """End the tenure: fail all appends that wait, and begin anew if the shard is still wanted."""
        if tenure is not self._tenure:
            return
        self._tenure = None
        released, self._released = self._released, None
        if released is None:
            logger.warning("shard %d is not led here any more: %s", self.index, tenure.over)
            self._world.lost(self.index)
        waiting, self._waiting = self._waiting, {}
        for durable in waiting.values():
            durable.errback(StorageError(tenure.over))
        if released is not None:
            released.callback(None)
        if self._is_wanted:
            self._begin(after_s=0 if released is not None else OVERTAKEN_S)


def _left_to_the_next_leader(failure: Failure) -> None:
    failure.trap(StorageError)


def _entry(claim: ShardClaim) -> Entry:
    return KEY, encode_claim(claim)
