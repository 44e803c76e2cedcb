"""Terms: producer ids and epochs in their order, also where the epochs of an id end."""

from __future__ import annotations

from kshim.upstream.shards.terms import (
    FIRST_PRODUCER_ID,
    FIRST_TERM,
    LAST_EPOCH,
    MOST_SKIPPED_IDS,
    Term,
    Terms,
    term_of,
)

ID = FIRST_PRODUCER_ID


def test_a_term_follows_the_other() -> None:
    assert Term(ID, 0) == FIRST_TERM
    assert FIRST_TERM.next == Term(ID, 1)
    assert (FIRST_TERM.led, FIRST_TERM.next_sequence) == (FIRST_TERM, 1)


def test_the_last_epoch_of_an_id_is_claimed_and_leads_under_the_next_id() -> None:
    last = Term(ID, LAST_EPOCH - 1).next
    assert last == Term(ID, LAST_EPOCH)
    assert (last.led, last.next_sequence) == (Term(ID + 1, 0), 0)
    assert last.next == Term(ID + 1, 1), "it fences the leader, who may not have written yet"
    assert Term(ID + 1, 0).next == Term(ID + 1, 1)
    assert last < last.led < last.next


def test_batches_of_others_have_no_term() -> None:
    assert term_of(-1, -1) is None
    assert term_of(4711, 3) is None
    assert term_of(ID + 1, 3) == Term(ID + 1, 3)


def test_terms_only_grow_in_a_log() -> None:
    terms = Terms()
    assert not terms.takes(None)
    assert terms.takes(Term(ID, 3))
    assert terms.takes(Term(ID, 3))
    assert not terms.takes(Term(ID, 2)), "Kafka has refused it, if it was a leader's"
    assert terms.takes(Term(ID + 1, 0))
    assert terms.newest == Term(ID + 1, 0)


def test_one_record_does_not_use_up_all_ids() -> None:
    terms = Terms()
    assert not terms.takes(Term(2**63 - 1, LAST_EPOCH))
    assert not terms.takes(Term(ID + MOST_SKIPPED_IDS + 1, 0))
    assert terms.newest is None
    assert terms.takes(Term(ID + MOST_SKIPPED_IDS, LAST_EPOCH))
    assert terms.takes(Term(ID + MOST_SKIPPED_IDS + 1, 0)), "what leaders count up to is never too far"
