"""The batches of a shard's log, as bytes."""

from __future__ import annotations

from uuid import UUID

import pytest

from kshim.storage.interfaces import JournalBatch, StorageDamaged
from kshim.upstream.shards.stored import UNKNOWN_CLAIM, encode_batch, loaded, read_batches
from kshim.upstream.shards.takeover import Batch
from kshim.upstream.shards.tenure import Outgoing
from kshim.upstream.shards.terms import FIRST_TERM, Term
from kshim.upstream.shards.transactions import ShardTransactions
from schemas.internal_topics.pending_offset import KEY as PENDING_KEY
from schemas.internal_topics.pending_offset import (
    PendingKey,
    PendingValue,
    encode_pending_key,
    encode_pending_value,
)
from schemas.internal_topics.shard_claim import KEY, ShardClaim, encode_claim
from schemas.records.batch import HEADER_BYTES, Compression, Record, decode_header, encode, patch
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker

CLAIM = ShardClaim(claim_id=UUID(int=1), host="here", port=9092, lease_ms=500)
NOW_MS = 1_700_000_000_000


def claim_at(offset: int) -> bytes:
    return patch(encode_batch(Outgoing(FIRST_TERM, 0, ((KEY, encode_claim(CLAIM)),)), NOW_MS), offset, 0)


def commits_at(offset: int) -> bytes:
    entries = ((b"a", b"1"), (b"b", None))
    return patch(encode_batch(Outgoing(FIRST_TERM, 7, entries), NOW_MS), offset, 0)


def test_a_batch_names_its_term_and_sequence() -> None:
    header = decode_header(commits_at(3))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (*FIRST_TERM, 7)
    assert (header.next_offset, header.is_transactional, header.max_timestamp) == (5, False, NOW_MS)


def test_what_a_takeover_is_told() -> None:
    data = claim_at(0) + commits_at(1)
    first, second = Batch(1, FIRST_TERM, CLAIM), Batch(3, FIRST_TERM, None)
    assert list(read_batches(data, 0)) == [first, second]
    assert list(read_batches(data, 2)) == [second], "a fetch begins with the batch that holds the offset"
    assert list(read_batches(data[:-1], 0)) == [first], "the rest was cut off"


def test_what_is_loaded() -> None:
    (batch,) = loaded([claim_at(0) + commits_at(1), commits_at(3)], ShardTransactions())
    assert isinstance(batch, JournalBatch)
    assert list(batch.records) == [(b"a", b"1"), (b"b", None)] * 2


def test_what_others_have_written_does_not_count() -> None:
    theirs = encode([Record(0, NOW_MS, b"a", b"0")], producer_id=4711, producer_epoch=9, base_sequence=0)
    (found,) = read_batches(theirs, 0)
    assert (found.next_offset, found.term, found.claim, found.is_damaged) == (1, None, None, False)
    assert "no kshim has written at offset 0, as producer 4711" in found.finding
    assert list(loaded([theirs], ShardTransactions())) == []


def marker_at(offset: int, *, producer_id: int = 7, committed: bool = True) -> bytes:
    return patch(encode_marker(marker(producer_id, committed)), offset, 0)


def marker(producer_id: int = 7, committed: bool = True) -> EndTxnMarker:
    return EndTxnMarker(producer_id, 1, committed, 0, NOW_MS)


def pending_at(offset: int, since: int, *, value: bytes | None = b"5") -> bytes:
    """A batch with a plain record on each side of an offset of producer 7."""
    key = encode_pending_key(PendingKey(7, 0, b"\0k"))
    pending = key, None if value is None else encode_pending_value(PendingValue(1, since, value))
    return patch(
        encode_batch(Outgoing(FIRST_TERM, 7, ((b"a", b"1"), pending, (b"b", b"2"))), NOW_MS), offset, 0
    )


def journal_batch(*entries: tuple[bytes, bytes | None], producer: tuple[int, int] = (-1, -1)) -> JournalBatch:
    return JournalBatch(list(entries), producer, skips_unreadable=True)


BEFORE, AFTER = journal_batch((b"a", b"1")), journal_batch((b"b", b"2"))
PENDING = journal_batch((b"\0k", b"5"), producer=(7, 1))


def test_pending_offsets_and_the_ends_of_transactions_are_loaded_in_their_order() -> None:
    transactions = ShardTransactions()
    found = list(loaded([pending_at(0, 0), marker_at(3)], transactions))
    assert found == [BEFORE, PENDING, AFTER, marker()]
    assert transactions.to_keep() == [b"\0k"], "the leader before has not come to it"


def test_a_pending_offset_behind_the_end_of_its_transaction_does_not_count() -> None:
    transactions = ShardTransactions()
    found = list(loaded([marker_at(0), pending_at(1, 0), marker_at(4)], transactions))
    assert found == [marker(), journal_batch(*BEFORE.records, *AFTER.records), marker()]
    assert (transactions.to_keep(), len(transactions.removals())) == ([], 1)


@pytest.mark.parametrize(("since", "other"), [(1, 7), (0, 8)])
def test_it_counts_behind_the_end_of_the_one_before_and_of_others(since: int, other: int) -> None:
    found = list(loaded([marker_at(0, producer_id=other), pending_at(1, since)], ShardTransactions()))
    assert found == [marker(other), BEFORE, PENDING, AFTER]


def test_what_the_leader_before_has_removed_is_done() -> None:
    transactions = ShardTransactions()
    list(loaded([pending_at(0, 0), marker_at(3), pending_at(4, 0, value=None)], transactions))
    assert not transactions


def test_what_a_leader_is_told_of_a_marker() -> None:
    control = Batch(1, None, None, marker())
    assert list(read_batches(marker_at(0) + commits_at(1), 0)) == [control, Batch(3, FIRST_TERM, None)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (PENDING_KEY, b"\0\0\0\1" + bytes(8) + b"v"),
        (PENDING_KEY + bytes(16), b"\0\0\0\1" + bytes(8) + b"v"),
        (PENDING_KEY + bytes(17), b"\0\1\0\1" + bytes(8) + b"v"),
        (PENDING_KEY + bytes(17), b""),
        (PENDING_KEY, None),
    ],
)
def test_a_pending_offset_that_cannot_be_read_is_skipped(
    key: bytes, value: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    data = bytes(encode_batch(Outgoing(FIRST_TERM, 0, ((b"a", b"1"), (key, value), (b"b", b"2"))), NOW_MS))
    assert list(loaded([data], ShardTransactions())) == [journal_batch((b"a", b"1"), (b"b", b"2"))]
    assert "skipped a pending offset at offset 0" in caplog.text


def test_an_upstream_may_compress() -> None:
    entries = [Record(0, NOW_MS, b"a", b"1")]
    ids = {"producer_id": FIRST_TERM.producer_id, "producer_epoch": 0, "base_sequence": 0}
    data = encode(entries, compression=Compression.GZIP, **ids)
    (batch,) = loaded([data], ShardTransactions())
    assert isinstance(batch, JournalBatch)
    assert list(batch.records) == [(b"a", b"1")]


@pytest.mark.parametrize("value", [b"", b"\0\0\1"])
def test_a_claim_that_cannot_be_read(value: bytes) -> None:
    """Its owner may lead for as long as any kshim may."""
    data = bytes(encode_batch(Outgoing(FIRST_TERM, 0, ((KEY, value),)), NOW_MS))
    (found,) = read_batches(data, 0)
    assert (found.term, found.claim) == (FIRST_TERM, UNKNOWN_CLAIM)
    assert "the claim at offset 0 cannot be read" in found.finding
    assert list(loaded([data], ShardTransactions())) == []


def test_a_batch_that_cannot_be_read_is_skipped() -> None:
    damaged = bytearray(commits_at(1))
    damaged[HEADER_BYTES] = 0x7F
    data = claim_at(0) + damaged + commits_at(3)
    first, second, third = read_batches(data, 0)
    assert (first.is_damaged, second.is_damaged, third.is_damaged) == (False, True, False)
    assert (second.next_offset, second.term) == (3, FIRST_TERM), "it fences nevertheless"
    assert "the batch at offset 1 is corrupt" in second.finding
    assert list(loaded([data], ShardTransactions())) == [journal_batch((b"a", b"1"), (b"b", None))]


def test_a_marker_that_cannot_be_read_ends_nothing() -> None:
    damaged = bytearray(marker_at(0))
    damaged[HEADER_BYTES] = 0x7F
    (found,) = read_batches(bytes(damaged), 0)
    assert (found.is_damaged, found.term, found.marker) == (True, None, None)
    assert list(loaded([bytes(damaged)], ShardTransactions())) == []


def test_where_a_batch_has_no_length_the_log_cannot_be_read_on() -> None:
    damaged = bytearray(commits_at(0))
    damaged[8:12] = (-100).to_bytes(4, signed=True)
    with pytest.raises(StorageDamaged, match="a batch has -88 bytes"):
        list(read_batches(bytes(damaged), 0))


def test_records_of_terms_that_nobody_can_have_do_not_count() -> None:
    far, old = Term(2**63 - 1, 32_767), FIRST_TERM
    entries = ((b"a", b"0"),)
    batches = (
        commits_at(0),
        patch(encode_batch(Outgoing(far, 0, entries), NOW_MS), 2, 0),
        patch(encode_batch(Outgoing(FIRST_TERM.next, 0, entries), NOW_MS), 3, 0),
        patch(encode_batch(Outgoing(old, 0, entries), NOW_MS), 4, 0),
    )
    found = list(loaded([b"".join(batches)], ShardTransactions()))
    assert found == [journal_batch((b"a", b"1"), (b"b", None), (b"a", b"0"))]
