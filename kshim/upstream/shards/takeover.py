"""Taking over a shard: the steps of a process from its assignment until it leads the shard.

    Reading ── end of the log ──> Claiming ── appended ──> Checking ── the claim there is its own ──> Waiting
                                     │ overtaken              │ it is somebody else's                    │
                                     └────────> Lost <────────┘            the lease before is over      ↓
                                                                                                      Leading

Pure: `wants` says what to do next, and the other methods take the results. A takeover reads the whole log up
to its claim, and no earlier leader can append behind that claim (docs/decisions/024). A process that has lost
begins a new takeover after a pause, if the shard is still assigned to it.
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
"""The longest lease of any kshim, whatever a claim says."""


class State(Enum):
    """The state of a takeover."""

    READING = auto()
    """The log is read to its end."""
    CLAIMING = auto()
    """The claim is being appended."""
    CHECKING = auto()
    """The log is read on, up to the claim, to check that it is this process's own."""
    WAITING = auto()
    """The former leader may still answer from memory, until its lease is over."""
    LEADING = auto()
    LOST = auto()
    """Another process was quicker."""


class Batch(NamedTuple):
    """The facts about a stored batch that a takeover needs."""

    next_offset: int
    term: Term | None
    """None for a batch that no kshim has written."""
    claim: ShardClaim | None = None
    """The last claim among the batch's records."""
    marker: EndTxnMarker | None = None
    """A transaction's end, written by the upstream."""
    finding: str = ""
    """What is wrong with the batch, for the log; it is ignored, wholly or in part."""
    is_damaged: bool = False
    """True if the batch cannot be read."""


class Read(NamedTuple):
    """Fetch from this offset."""

    offset: int


class Append(NamedTuple):
    """Append the claim as the first batch of a term, with sequence 0. Repeat it after Meaning.AGAIN."""

    term: Term
    claim: ShardClaim


class Wait(NamedTuple):
    """Wait so long."""

    wait_ms: int


class Lead(NamedTuple):
    """Lead the shard."""

    term: Term
    next_sequence: int
    next_offset: int


class GiveUp(NamedTuple):
    """Another process leads the shard, or is about to."""


Want = Read | Append | Wait | Lead | GiveUp


class Takeover:
    """The takeover of one shard by this process."""

    def __init__(self, claim: ShardClaim) -> None:
        """claim: the claim to append, with this process's lease. Its id must be new."""
        self.state = State.READING
        self._terms = Terms()
        self.finding = ""
        """What is wrong with the last batch that is ignored, for the log."""
        self._had_leaders = False
        """True if other processes have led the shard."""
        self.found: ShardClaim | None = None
        """The newest claim in the log."""
        self._own = claim
        self._claimed = FIRST_TERM
        self._before: ShardClaim | None = None
        """The newest claim in the log except this process's own."""
        self._next_offset = 0
        self._until = 0
        """The offset up to which the log has to be read."""

    @property
    def newest(self) -> Term | None:
        """The newest term in the log."""
        return self._terms.newest

    def wants(self) -> Want:
        """Return what to do next."""
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
        """How long others may still answer, after they can no longer prove that they lead."""
        if self._before is None:  # somebody has removed the claim
            return self._own.lease_ms if self._had_leaders else 0
        return 0 if self._before.is_released else min(max(0, self._before.lease_ms), LONGEST_LEASE_MS)

    def was_read(self, batches: Iterable[Batch], end_offset: int) -> None:
        """Note the batches of a fetch, and the end of the log (its high watermark)."""
        assert self.state in (State.READING, State.CHECKING), self.state
        for batch in batches:
            self._note(batch)
        self._until = max(self._until, end_offset)
        if self._next_offset < self._until:
            return
        if self.state is State.READING:
            self._claimed = FIRST_TERM if self.newest is None else self.newest.next
            # Our claim carries the longer of both leases: if we die while waiting, our successor still waits
            # for our predecessor.
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
        """Note the answer to the claim. The caller handles REFUSED: it tries again later, or not at all."""
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
    """Return a line about a batch whose term is not a leader's; empty if the batch has no term."""
    if batch.term is None:
        return ""
    return (
        f"somebody who is no kshim has written in front of offset {batch.next_offset}, as producer "
        f"{batch.term.producer_id} of epoch {batch.term.producer_epoch}; it counts for nothing"
    )


def with_margin(lease_ms: int) -> int:
    """How long to wait for the end of a lease: its owner's clock may be slower than ours."""
    return lease_ms + lease_ms // 10 + 1
