"""A tenure step by step; whole histories are in tests/simulation/shards."""

from __future__ import annotations

import pytest

from kshim.upstream.shards.answers import NO_ANSWER, Answer
from kshim.upstream.shards.batch_limit import MOST_BYTES
from kshim.upstream.shards.takeover import Batch, Lead
from kshim.upstream.shards.tenure import (
    CUT_OFF_MS,
    LAST_SEQUENCE,
    RENEW_MS,
    TIMEOUT_MS,
    Entry,
    Marker,
    Outgoing,
    Tenure,
)
from kshim.upstream.shards.terms import FIRST_TERM
from schemas.error_code import ErrorCode
from schemas.records.end_txn_marker import EndTxnMarker

CLAIM: Entry = (b"claim", b"ours")
A, B, C = [(b"a", b"1")], [(b"b", b"2"), (b"b", None)], [(b"c", b"3")]
LEASE_MS = 500
ONE, TWO = EndTxnMarker(7, 0, True, 0, 0), EndTxnMarker(8, 0, False, 0, 0)


def new_tenure(next_sequence: int = 1, next_offset: int = 10, batch_bytes: int = MOST_BYTES) -> Tenure:
    return Tenure(Lead(FIRST_TERM, next_sequence, next_offset), LEASE_MS, 0, CLAIM, batch_bytes)


def appended(offset: int) -> Answer:
    return Answer(ErrorCode.NONE, offset)


def test_what_waits_goes_into_the_next_batch_together() -> None:
    tenure = new_tenure()
    one = tenure.append(A, 0)
    assert tenure.to_send(0) == Outgoing(FIRST_TERM, 1, tuple(A))
    two, three = tenure.append(B, 1), tenure.append(C, 2)
    assert tenure.to_send(2) is None, "one is under way"
    assert tenure.was_answered(appended(10)) == [one]
    assert tenure.to_send(3) == Outgoing(FIRST_TERM, 2, (*B, *C))
    assert tenure.was_answered(appended(11)) == [two, three]
    assert tenure.to_send(4) is None


def test_a_batch_does_not_grow_without_end() -> None:
    tenure = new_tenure()
    large = [(b"k", b"v" * (MOST_BYTES // 2))]
    for _ in range(3):
        tenure.append(large, 0)
    sent = tenure.to_send(0)
    assert sent is not None
    assert len(sent.entries) == 1
    assert tenure.was_answered(appended(10)) == [1]


def test_what_is_too_large_for_one_batch_is_cut() -> None:
    tenure = new_tenure(batch_bytes=10)
    before = tenure.append(A, 0)
    entries: list[Entry] = [(b"a", b"12345"), (b"b", b"1"), (b"c", None), (b"d", b"x" * 20), (b"e", b"2")]
    cut = tenure.append(entries, 0)
    after = tenure.append(C, 0)
    sent, settled = [], []
    for offset in range(10, 30):
        batch = tenure.to_send(offset)
        if batch is None:
            break
        sent.append(len(batch.entries))
        settled.append(tenure.was_answered(appended(10 + sum(sent[:-1])))[-1])
    assert sent == [1, 3, 1, 2], "one that is larger goes by itself"
    assert settled[0] == before
    assert settled[-1] == after > cut
    assert cut not in settled[:2], "it is durable with its last batch"


def test_a_batch_is_sent_again_as_it_is() -> None:
    tenure = new_tenure()
    tenure.append(A, 0)
    sent = tenure.to_send(0)
    tenure.append(B, 1)
    assert tenure.was_answered(NO_ANSWER) == []
    assert tenure.to_send_again(5) == sent
    assert tenure.was_answered(appended(10)) == [1]


def test_sequences_begin_again() -> None:
    tenure = new_tenure(LAST_SEQUENCE)
    tenure.append(B, 0)
    tenure.to_send(0)
    tenure.was_answered(appended(10))
    tenure.append(A, 0)
    assert tenure.to_send(1) == Outgoing(FIRST_TERM, 1, tuple(A))


@pytest.mark.parametrize(
    "error",
    [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.MESSAGE_TOO_LARGE],
)
def test_a_refused_batch_ends_it(error: ErrorCode) -> None:
    tenure = new_tenure()
    tenure.append(A, 0)
    tenure.to_send(0)
    assert tenure.was_answered(Answer(error)) == []
    assert tenure.over == error.name
    assert tenure.to_send(1) is None
    assert not tenure.is_fresh(1)


def test_a_batch_that_is_not_answered_ends_it() -> None:
    tenure = new_tenure()
    tenure.append(A, 0)
    tenure.to_send(0)
    tenure.was_answered(NO_ANSWER)
    assert tenure.to_send_again(TIMEOUT_MS) is None
    assert tenure.over
    assert tenure.was_answered(appended(10)) == [], "whoever asked was told that it failed"


def test_a_lease_runs_from_when_the_proven_question_was_sent() -> None:
    tenure = new_tenure()
    assert tenure.is_fresh(LEASE_MS - 1)
    assert not tenure.is_fresh(LEASE_MS)
    tenure.append(A, 600)
    tenure.to_send(600)
    assert not tenure.is_fresh(600)
    tenure.was_answered(appended(10))
    assert tenure.is_fresh(600 + LEASE_MS - 1)
    assert tenure.asks(1_500)
    assert not tenure.asks(1_501), "one question at a time"
    assert tenure.learn_end(11) == []
    assert tenure.is_fresh(1_500 + LEASE_MS - 1)
    assert not tenure.is_fresh(1_500 + LEASE_MS)


def test_a_proof_is_a_question_that_was_asked_afterwards() -> None:
    tenure = new_tenure()
    assert tenure.asks(100)
    wanted = tenure.prove(101)
    assert tenure.learn_end(10) == [], "it was asked before"
    assert tenure.asks(102)
    assert tenure.learn_end(10) == [wanted]


def test_an_append_proves_as_well() -> None:
    tenure = new_tenure()
    before, one, between = tenure.prove(0), tenure.append(A, 0), tenure.prove(0)
    tenure.to_send(1)
    later = tenure.prove(2)
    assert tenure.was_answered(appended(10)) == [before, one, between]
    assert tenure.asks(3)
    assert tenure.learn_end(11) == [later]


def test_the_end_says_nothing_while_a_batch_is_under_way_or_before_it_was() -> None:
    tenure = new_tenure()
    assert tenure.asks(0)
    tenure.append(A, 0)
    tenure.to_send(0)
    assert not tenure.asks(1)
    tenure.learn_end(11)
    assert not tenure.over
    tenure.was_answered(appended(10))
    assert tenure.asks(1_000)
    tenure.learn_end(10)
    assert not tenure.is_fresh(1_000)
    assert not tenure.over


def test_whatever_another_leader_has_written_ends_it() -> None:
    tenure = new_tenure()
    tenure.prove(0)
    assert tenure.asks(0)
    assert tenure.learn_end(11) == []
    assert not tenure.is_idle
    assert tenure.to_read() == 10
    assert tenure.was_read([Batch(11, FIRST_TERM.next)]) == []
    assert tenure.over == "another process leads it"
    assert tenure.settled() == []


def test_whatever_nobody_can_have_written_who_leads_does_not_end_it() -> None:
    tenure = new_tenure()
    wanted = tenure.prove(0)
    assert tenure.asks(0)
    tenure.learn_end(12)
    tenure.to_read()
    strange = FIRST_TERM._replace(producer_id=2**63 - 1)
    tenure.was_read([Batch(11, strange), Batch(12, None, finding="a stranger")])
    assert not tenure.over
    assert tenure.settled() == [wanted]
    assert tenure.finding == "a stranger"


def test_the_ends_of_transactions_are_read_before_a_proof() -> None:
    tenure = new_tenure()
    wanted = tenure.prove(600)
    assert tenure.asks(600)
    assert tenure.learn_end(12) == []
    assert not tenure.is_fresh(600)
    assert tenure.to_read() == 10
    assert tenure.to_read() is None, "it is being read"
    assert not tenure.asks(600)
    assert tenure.was_read([Batch(11, None, None, ONE)]) == [Marker(ONE, 10)]
    assert tenure.settled() == [], "there is more"
    assert tenure.to_read() == 11
    assert tenure.was_read([Batch(12, None, None, TWO)]) == [Marker(TWO, 11)]
    assert tenure.settled() == [wanted]
    assert tenure.is_fresh(600 + LEASE_MS - 1)


def test_the_ends_of_transactions_are_read_before_what_is_behind_them_is_durable() -> None:
    tenure = new_tenure()
    one = tenure.append(A, 0)
    tenure.to_send(0)
    two = tenure.append(B, 0)
    assert tenure.was_answered(appended(11)) == []
    assert tenure.to_send(0) is None
    assert tenure.to_read() == 10
    own = Batch(12, FIRST_TERM)
    assert tenure.was_read([Batch(11, None, None, ONE), own]) == [Marker(ONE, 10)]
    assert tenure.settled() == [one]
    assert tenure.to_send(0) == Outgoing(FIRST_TERM, 2, tuple(B))
    assert tenure.was_answered(appended(12)) == [two]


def test_a_batch_that_was_sent_again_tells_nothing_of_what_is_behind_it() -> None:
    """It may be in the log since it was sent first."""
    tenure = new_tenure()
    one = tenure.append(A, 0)
    tenure.to_send(0)
    tenure.was_answered(NO_ANSWER)
    wanted = tenure.prove(1)
    tenure.to_send_again(2)
    assert tenure.was_answered(appended(10)) == [one]
    assert tenure.asks(3)
    assert tenure.learn_end(11) == [wanted]


def test_what_cannot_be_read_is_read_again() -> None:
    tenure = new_tenure()
    tenure.asks(0)
    tenure.learn_end(11)
    assert tenure.to_read() == 10
    assert tenure.was_read(None) == []
    assert tenure.settled() == []
    assert tenure.to_read() == 10


def test_batches_of_anybody_who_is_no_kshim_do_not_matter() -> None:
    tenure = new_tenure()
    wanted = tenure.prove(0)
    tenure.asks(0)
    tenure.learn_end(13)
    assert tenure.to_read() == 10
    assert tenure.was_read([Batch(13, None)]) == []
    assert tenure.settled() == [wanted]
    assert tenure.asks(1)
    tenure.learn_end(13)
    assert not tenure.over


def test_an_idle_leader_writes_its_claim_again() -> None:
    tenure = new_tenure()
    for now_ms in range(0, RENEW_MS, LEASE_MS):
        assert tenure.to_send(now_ms) is None
        assert tenure.asks(now_ms)
        tenure.learn_end(10)
    assert tenure.to_send(RENEW_MS) == Outgoing(FIRST_TERM, 1, (CLAIM,))


def test_whoever_has_slept_appends_nothing_more() -> None:
    tenure = new_tenure()
    tenure.append(A, CUT_OFF_MS)
    assert tenure.to_send(CUT_OFF_MS) is None
    assert tenure.over == "nothing heard for 30 s"


def test_an_idle_leader_lets_go_with_a_last_batch() -> None:
    tenure = new_tenure()
    assert tenure.release(CLAIM) == Outgoing(FIRST_TERM, 1, (CLAIM,))
    assert tenure.over
    assert not tenure.is_fresh(0)


def test_while_something_waits_it_is_not_idle() -> None:
    tenure = new_tenure()
    tenure.prove(0)
    assert not tenure.is_idle
    assert tenure.asks(0)
    tenure.learn_end(10)
    assert tenure.is_idle
