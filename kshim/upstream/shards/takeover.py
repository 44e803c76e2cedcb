"""Taking over a shard: what a process does from the wish to lead it until it leads it.

    Reading ── end of the log ──> Claiming ── appended ──> Checking ── the claim there is its own ──> Waiting
                                     │ overtaken              │ it is somebody else's                    │
                                     └────────> Lost <────────┘            the lease before is over      ↓
                                                                                                      Leading

Pure: it says what to do (`wants`), and is told what has come of it. All that was read on the way is the whole
log up to its claim, and nobody who led before can append behind that (docs/decisions/024). Whoever has lost
begins a new takeover after a pause, if it is still to lead the shard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum, auto
from typing import NamedTuple

from kshim.upstream.shards.answers import Answer, Meaning
from kshim.upstream.shards.terms import FIRST_TERM, Term, Terms
from schemas.internal_topics.shard_claim import ShardClaim
from schemas.records.end_txn_marker import EndTxnMarker

LONGEST_LEASE_MS = 10_000
"""No kshim has a longer one, whatever a claim says."""


class State(Enum):
    """Where a takeover is."""

    READING = auto()
    """The log is read to its end."""
    CLAIMING = auto()
    """The claim is being appended."""
    CHECKING = auto()
    """The log is read on, up to the claim: is it the own one?"""
    WAITING = auto()
    """The leader before may still answer what it knows, until its lease is over."""
    LEADING = auto()
    LOST = auto()
    """Somebody else was quicker."""


class Batch(NamedTuple):
    """What has to be known of a stored batch, before its records are looked at."""

    next_offset: int
    term: Term | None
    """None for a batch of anybody who is no kshim."""
    claim: ShardClaim | None = None
    """The last claim among its records."""
    marker: EndTxnMarker | None = None
    """The end of a transaction, which the upstream has written."""
    finding: str = ""
    """What is wrong with it: it counts for nothing, or less than it should."""
    is_damaged: bool = False
    """Whether it cannot be read."""


class Read(NamedTuple):
    """Fetch from this offset."""

    offset: int


class Append(NamedTuple):
    """Append the claim as the first batch of a term, with sequence 0; again after an answer that says so."""

    term: Term
    claim: ShardClaim


class Wait(NamedTuple):
    """Let so much time pass."""

    wait_ms: int


class Lead(NamedTuple):
    """Lead the shard."""

    term: Term
    next_sequence: int
    next_offset: int


class GiveUp(NamedTuple):
    """Somebody else leads the shard, or is about to."""


Want = Read | Append | Wait | Lead | GiveUp


class Takeover:
    """One shard on the way to be led by this process."""

    def __init__(self, claim: ShardClaim) -> None:
        """claim: to be appended, with the lease that this process will have; its id must be new."""
        self.state = State.READING
        self._terms = Terms()
        self.finding = ""
        """The last batch that counts for nothing, in words."""
        self._had_leaders = False
        """Whether others have led the shard."""
        self.found: ShardClaim | None = None
        """The newest claim that was found."""
        self._own = claim
        self._claimed = FIRST_TERM
        self._before: ShardClaim | None = None
        """The newest claim but the own one."""
        self._next_offset = 0
        self._until = 0
        """Where to read up to."""

    @property
    def newest(self) -> Term | None:
        """The newest term that was found."""
        return self._terms.newest

    def wants(self) -> Want:
        """What to do next."""
        match self.state:
            case State.READING | State.CHECKING:
                return Read(self._next_offset)
            case State.CLAIMING:
                return Append(self._claimed, self._own)
            case State.WAITING:
                return Wait(with_margin(self._lease_before_ms))
            case State.LEADING:
                return Lead(self._claimed.led, self._claimed.next_sequence, self._next_offset)
            case State.LOST:
                return GiveUp()

    @property
    def _lease_before_ms(self) -> int:
        """For how long others may still answer, once they cannot prove any more that they lead."""
        if self._before is None:  # somebody has removed its claim
            return self._own.lease_ms if self._had_leaders else 0
        return 0 if self._before.is_released else min(max(0, self._before.lease_ms), LONGEST_LEASE_MS)

    def was_read(self, batches: Iterable[Batch], end_offset: int) -> None:
        """Note what a fetch has brought, and where the log ends (its high watermark)."""
        assert self.state in (State.READING, State.CHECKING), self.state
        for batch in batches:
            self._note(batch)
        self._until = max(self._until, end_offset)
        if self._next_offset < self._until:
            return
        if self.state is State.READING:
            self._claimed = FIRST_TERM if self.newest is None else self.newest.next
            # Who dies while it waits has told the next one how long to wait for the one before.
            lease_ms = max(self._own.lease_ms, self._lease_before_ms)
            self._own = replace(self._own, lease_ms=lease_ms)
            self.state = State.CLAIMING
        elif self.newest != self._claimed or self.found is None or self.found.claim_id != self._own.claim_id:
            self.state = State.LOST
        else:
            self.state = State.WAITING if self._lease_before_ms else State.LEADING

    def _note(self, batch: Batch) -> None:
        self._next_offset = max(self._next_offset, batch.next_offset)
        self.finding = batch.finding or self.finding
        if not self._terms.takes(batch.term):
            self.finding = finding_of(batch) or self.finding
            return
        if batch.claim is not None:
            self.found = batch.claim
        if batch.claim is None or batch.claim.claim_id != self._own.claim_id:
            self._had_leaders = True
            self._before = batch.claim or self._before

    def was_answered(self, answer: Answer) -> None:
        """Note the answer to the claim. REFUSED is not for here: it is tried again later, or not at all."""
        assert self.state is State.CLAIMING, self.state
        if answer.meaning is Meaning.APPENDED:
            self._until = answer.base_offset + 1
            self.state = State.CHECKING
        elif answer.meaning is Meaning.OVERTAKEN:
            self.state = State.LOST

    def has_waited(self) -> None:
        """Note that the time of `Wait` is over."""
        assert self.state is State.WAITING, self.state
        self.state = State.LEADING


def finding_of(batch: Batch) -> str:
    """A line about a batch that has a term, and is no leader's; empty if it has none."""
    if batch.term is None:
        return ""
    return (
        f"somebody who is no kshim has written in front of offset {batch.next_offset}, as producer "
        f"{batch.term.producer_id} of epoch {batch.term.producer_epoch}; it counts for nothing"
    )


def with_margin(lease_ms: int) -> int:
    """How long to wait for the end of a lease whose owner's clock may be slower than ours."""
    return lease_ms + lease_ms // 10 + 1
