"""A takeover step by step; whole histories are in tests/simulation/shards."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from kshim.upstream.shards.answers import NO_ANSWER, Answer
from kshim.upstream.shards.takeover import Append, Batch, GiveUp, Lead, Read, State, Takeover, Wait
from kshim.upstream.shards.terms import FIRST_TERM, LAST_EPOCH, Term
from schemas.error_code import ErrorCode
from schemas.internal_topics.shard_claim import ShardClaim

OURS = ShardClaim(claim_id=UUID(int=1), host="ours", port=9092, lease_ms=500)
THEIRS = ShardClaim(claim_id=UUID(int=2), host="theirs", port=9092, lease_ms=2000)
NEXT = FIRST_TERM.next


def claimed(takeover: Takeover, at: int) -> None:
    """Append the claim, and hand over its offset."""
    assert isinstance(takeover.wants(), Append)
    takeover.was_answered(Answer(ErrorCode.NONE, at))


def test_an_empty_shard_is_led_at_once() -> None:
    takeover = Takeover(OURS)
    assert takeover.wants() == Read(0)
    takeover.was_read([], 0)
    assert takeover.wants() == Append(FIRST_TERM, OURS)
    claimed(takeover, 0)
    assert takeover.wants() == Read(0)
    takeover.was_read([], 0)
    assert takeover.wants() == Read(0), "the claim is not visible yet"
    takeover.was_read([Batch(1, FIRST_TERM, OURS)], 1)
    assert takeover.wants() == Lead(FIRST_TERM, 1, 1)


def test_the_lease_of_the_leader_before_has_to_end() -> None:
    takeover = Takeover(OURS)
    takeover.was_read([Batch(1, FIRST_TERM, THEIRS)], 3)
    assert takeover.wants() == Read(1)
    takeover.was_read([Batch(3, FIRST_TERM)], 3)
    own = replace(OURS, lease_ms=2000)
    assert takeover.wants() == Append(NEXT, own), "whoever comes next has to wait as long, if we do not lead"
    claimed(takeover, 5)
    takeover.was_read([Batch(5, FIRST_TERM), Batch(6, NEXT, own)], 6)
    assert takeover.wants() == Wait(2201)
    takeover.has_waited()
    assert takeover.wants() == Lead(NEXT, 1, 6)


@pytest.mark.parametrize("late", [False, True])
def test_nobody_waits_for_a_leader_that_has_let_go(late: bool) -> None:
    """Also if it does so while the shard is taken over."""
    takeover, released = Takeover(OURS), Batch(2, FIRST_TERM, replace(THEIRS, is_released=True))
    first = Batch(1, FIRST_TERM, THEIRS)
    takeover.was_read([first] if late else [first, released], 1 if late else 2)
    claimed(takeover, 2)
    takeover.was_read([*([released] if late else []), Batch(3, NEXT, OURS)], 3)
    assert takeover.wants() == Lead(NEXT, 1, 3)


def test_of_two_claims_to_a_term_the_one_in_the_log_counts() -> None:
    """Both are answered with the same offset."""
    takeover = Takeover(OURS)
    takeover.was_read([], 0)
    claimed(takeover, 0)
    takeover.was_read([Batch(1, FIRST_TERM, THEIRS)], 1)
    assert takeover.wants() == GiveUp()


def test_a_claim_that_is_claimed_over_does_not_count() -> None:
    takeover = Takeover(OURS)
    takeover.was_read([], 0)
    claimed(takeover, 0)
    takeover.was_read([Batch(1, FIRST_TERM, OURS), Batch(2, NEXT, THEIRS)], 2)
    assert takeover.wants() == GiveUp()


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ],
)
def test_a_claim_that_comes_too_late_is_lost(error: ErrorCode) -> None:
    takeover = Takeover(OURS)
    takeover.was_read([], 0)
    takeover.was_answered(Answer(error))
    assert takeover.wants() == GiveUp()


def test_a_claim_without_an_answer_is_sent_again_as_it_is() -> None:
    takeover = Takeover(OURS)
    takeover.was_read([], 0)
    asked = takeover.wants()
    takeover.was_answered(NO_ANSWER)
    takeover.was_answered(Answer(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
    assert takeover.state is State.CLAIMING
    assert takeover.wants() == asked


def test_batches_of_others_and_of_earlier_terms_do_not_count() -> None:
    takeover = Takeover(OURS)
    old = Batch(4, FIRST_TERM, THEIRS)
    takeover.was_read([Batch(1, NEXT), Batch(3, None, THEIRS), old], 4)
    assert takeover.wants() == Append(NEXT.next, OURS)


def test_the_last_epoch_leads_under_the_next_id() -> None:
    takeover, last = Takeover(OURS), FIRST_TERM._replace(producer_epoch=LAST_EPOCH)
    released = replace(THEIRS, is_released=True)
    takeover.was_read([Batch(1, last._replace(producer_epoch=LAST_EPOCH - 1), released)], 1)
    claimed(takeover, 1)
    takeover.was_read([Batch(2, last, OURS)], 2)
    assert takeover.wants() == Lead(Term(last.producer_id + 1, 0), 0, 2)


def test_a_term_that_nobody_can_have_reached_is_a_finding() -> None:
    takeover = Takeover(OURS)
    takeover.was_read([Batch(1, FIRST_TERM, THEIRS), Batch(2, Term(2**63 - 1, LAST_EPOCH), OURS)], 2)
    assert takeover.wants() == Append(NEXT, replace(OURS, lease_ms=THEIRS.lease_ms))
    assert "no kshim has written in front of offset 2, as producer 9223372036854775807" in takeover.finding


@pytest.mark.parametrize(("lease_ms", "wait_ms"), [(2**31 - 1, 11_001), (-5, 0)])
def test_a_lease_that_no_kshim_has_is_not_waited_for(lease_ms: int, wait_ms: int) -> None:
    takeover = Takeover(OURS)
    takeover.was_read([Batch(1, FIRST_TERM, replace(THEIRS, lease_ms=lease_ms))], 1)
    own = takeover.wants()
    assert isinstance(own, Append)
    claimed(takeover, 1)
    takeover.was_read([Batch(2, NEXT, own.claim)], 2)
    assert takeover.wants() == (Wait(wait_ms) if wait_ms else Lead(NEXT, 1, 2))


def test_where_a_claim_was_removed_a_lease_as_the_own_one_has_to_end() -> None:
    takeover = Takeover(OURS)
    takeover.was_read([Batch(1, FIRST_TERM)], 1)
    claimed(takeover, 1)
    takeover.was_read([Batch(2, NEXT, OURS)], 2)
    assert takeover.wants() == Wait(551)
