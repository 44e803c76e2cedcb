"""Terms: producer ids and epochs in their order, also where the epochs of an id end."""

from __future__ import annotations

from kshim.upstream.shards.terms import FIRST_PRODUCER_ID, FIRST_TERM, LAST_EPOCH, Term, term_of

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
