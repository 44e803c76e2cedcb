"""The batches of a shard's log, as bytes."""

from __future__ import annotations

from uuid import UUID

import pytest

from kshim.storage.interfaces import JournalBatch, StorageDamaged
from kshim.upstream.shards.stored import encode_batch, loaded, read_batches
from kshim.upstream.shards.takeover import Batch
from kshim.upstream.shards.tenure import Outgoing
from kshim.upstream.shards.terms import FIRST_TERM
from kshim.upstream.shards.transactions import ShardTransactions
from schemas.internal_topics.pending_offset import KEY as PENDING_KEY
from schemas.internal_topics.pending_offset import (
    PendingKey,
    PendingValue,
    encode_pending_key,
    encode_pending_value,
)
from schemas.internal_topics.shard_claim import KEY, ShardClaim, encode_claim
from schemas.records.batch import Compression, Record, decode_header, encode, patch
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
    assert list(read_batches(theirs, 0)) == [Batch(1, None, None)]
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


BEFORE, AFTER = JournalBatch([(b"a", b"1")]), JournalBatch([(b"b", b"2")])
PENDING = JournalBatch([(b"\0k", b"5")], (7, 1))


def test_pending_offsets_and_the_ends_of_transactions_are_loaded_in_their_order() -> None:
    transactions = ShardTransactions()
    found = list(loaded([pending_at(0, 0), marker_at(3)], transactions))
    assert found == [BEFORE, PENDING, AFTER, marker()]
    assert transactions.to_keep() == [b"\0k"], "the leader before has not come to it"


def test_a_pending_offset_behind_the_end_of_its_transaction_does_not_count() -> None:
    transactions = ShardTransactions()
    found = list(loaded([marker_at(0), pending_at(1, 0), marker_at(4)], transactions))
    assert found == [marker(), JournalBatch([*BEFORE.records, *AFTER.records]), marker()]
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
def test_a_pending_offset_that_cannot_be_read(key: bytes, value: bytes | None) -> None:
    data = encode_batch(Outgoing(FIRST_TERM, 0, ((key, value),)), NOW_MS)
    with pytest.raises(StorageDamaged, match="a pending offset at offset 0 cannot be read"):
        list(loaded([data], ShardTransactions()))


def test_an_upstream_may_compress() -> None:
    entries = [Record(0, NOW_MS, b"a", b"1")]
    ids = {"producer_id": FIRST_TERM.producer_id, "producer_epoch": 0, "base_sequence": 0}
    data = encode(entries, compression=Compression.GZIP, **ids)
    (batch,) = loaded([data], ShardTransactions())
    assert isinstance(batch, JournalBatch)
    assert list(batch.records) == [(b"a", b"1")]


@pytest.mark.parametrize("value", [b"", b"\0\0\1"])
def test_a_claim_that_cannot_be_read(value: bytes) -> None:
    data = encode_batch(Outgoing(FIRST_TERM, 0, ((KEY, value),)), NOW_MS)
    with pytest.raises(StorageDamaged, match="the claim at offset 0 cannot be read"):
        list(read_batches(data, 0))
