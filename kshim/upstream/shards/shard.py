"""One shard in this process: makes an `Attempt` to lead it, then carries out its `Tenure`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kshim.storage.interfaces import NO_PRODUCER, StorageDamaged, StorageError
from kshim.upstream.shards.answers import Answer, Meaning
from kshim.upstream.shards.attempt import (
    AGAIN_S,
    Attempt,
    CalledOff,
    Led,
    World,
    entry,
    log_finding,
    log_shortage,
)
from kshim.upstream.shards.batch_limit import DEFAULT_BYTES, TOO_LARGE
from kshim.upstream.shards.partitions import Fetched
from kshim.upstream.shards.stored import encode_batch, read_batches
from kshim.upstream.shards.tenure import Entry, Marker, Outgoing, Seen, Tenure, Token
from kshim.upstream.shards.transactions import ShardTransactions
from schemas.internal_topics.shard_claim import ShardClaim

logger = logging.getLogger(__name__)

OVERTAKEN_S = 1.0
"""The pause before a lost shard is claimed again: time for a frozen process to be reassigned."""
MARKERS_BYTES = 16 * 1024
"""Limit of a fetch of foreign records behind the leader's; a marker has 78 bytes."""


class Shard:
    """Leads one shard, or tries to, while it is wanted. Used only on the reactor thread."""

    def __init__(self, index: int, world: World) -> None:
        self.index = index
        self.fetched: list[bytes] = []
        """The batches that the takeover has read, until they are loaded."""
        self._world = world
        self._attempt: Attempt | None = None
        """The last attempt to lead the shard."""
        self._is_wanted = False
        self._claim: ShardClaim | None = None
        """The claim under which the shard was led last."""
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

    def seen(self) -> Seen | None:
        """Return what the leader waits for; None if the shard is not led here."""
        return None if self._tenure is None or not self.is_led else self._tenure.seen(self._world.now_ms())

    def append(self, entries: Sequence[Entry], producer: Sequence[int] = NO_PRODUCER) -> Deferred[None]:
        """See `Journal.append`."""
        if self._tenure is None:
            return fail(_not_led())
        durable: Deferred[None] = Deferred()
        if producer != NO_PRODUCER:
            entries = self.transactions.pending(producer, entries)
            self._place(producer[0], durable)
        elif self.transactions:
            entries = [*entries, *self.transactions.removals(key for key, _ in entries)]
        self._waiting[self._tenure.append(entries, self._world.now_ms())] = durable
        self._go_on(self._tenure)
        return durable

    def prove_leadership(self) -> Deferred[None]:
        """See `Journal.prove_leadership`."""
        if self._tenure is None:
            return fail(_not_led())
        proven: Deferred[None] = Deferred()
        self._waiting[self._tenure.prove(self._world.now_ms())] = proven
        self._go_on(self._tenure)
        return proven

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
        self._call_off()
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
            asked.addCallback(lambda end: self._settle(tenure, tenure.learn_end(end)))

    # ---- taking over

    def _begin(self, after_s: float = 0) -> None:
        self._call_off()
        attempt = self._attempt = Attempt(self.index, self._world)
        led = Deferred.fromCoroutine(attempt.run(after_s))
        led.addCallback(self._lead).addErrback(self._failed)

    def _call_off(self) -> None:
        if self._attempt is not None:
            self._attempt.call_off()

    def _failed(self, failure: Failure) -> None:
        if failure.check(CalledOff) is None:
            logger.error(
                "internal error: shard %d cannot be taken over: %s", self.index, failure.getTraceback()
            )

    # ---- leading

    def _lead(self, led: Led) -> None:
        lead, claim, claimed_ms, self.fetched = led
        self._claim = claim
        self.transactions = ShardTransactions(lead.next_offset)
        batch_bytes = self._world.limit.batch_bytes
        self._tenure = Tenure(lead, claim.lease_ms, claimed_ms, entry(claim), batch_bytes)
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
            last = tenure.release(entry(replace(self._claim, is_released=True)))
            said = self._world.log.append(self.index, encode_batch(last, self._world.wall_ms()))
            said.addCallback(lambda _: self._end(tenure))
        elif tenure.over:
            self._end(tenure)

    def _send(self, tenure: Tenure, batch: Outgoing) -> None:
        data = encode_batch(batch, self._world.wall_ms())
        self._world.log.append(self.index, data).addCallback(self._answered, tenure, len(data))

    def _answered(self, answer: Answer, tenure: Tenure, batch_bytes: int) -> None:
        log_shortage(self._world.once, answer)
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
            logger.error("shard %d: its log cannot be read further: %s", self.index, error)
            markers = []
        log_finding(self._world.once, self.index, tenure.finding)
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
            logger.debug("shard %d is no longer led here: %s", self.index, tenure.over)
            self._world.lost(self.index)
            self._world.gave_up(self.index, tenure.over)
        waiting, self._waiting = self._waiting, {}
        for durable in waiting.values():
            durable.errback(StorageError(tenure.over))
        if released is not None:
            released.callback(None)
        if self._is_wanted:
            self._begin(after_s=0 if released is not None else OVERTAKEN_S)


def _not_led() -> StorageError:
    return StorageError("the shard is not led here")


def _left_to_the_next_leader(failure: Failure) -> None:
    failure.trap(StorageError)
