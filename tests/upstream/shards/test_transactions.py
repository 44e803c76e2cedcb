"""Which pending offsets of a shard are open, to be kept, or to be removed."""

from __future__ import annotations

from kshim.upstream.shards.transactions import NO_MARKER, ShardTransactions
from schemas.internal_topics.pending_offset import decode_pending_key, decode_pending_value
from schemas.records.end_txn_marker import EndTxnMarker

PAUL, PETRA = (7, 0), (8, 3)
K, L = b"\0k", b"\0l"


def end(
    transactions: ShardTransactions, producer: tuple[int, int], offset: int, committed: bool = True
) -> None:
    transactions.ended(EndTxnMarker(*producer, committed, 0, 0), offset)


def removed(transactions: ShardTransactions, *offset_keys: bytes) -> list[tuple[int, int, bytes]]:
    removals = transactions.removals(offset_keys or None)
    assert all(value is None for _, value in removals)
    return [tuple(decode_pending_key(key)) for key, _ in removals]


def test_a_record_says_whose_it_is_and_since_when() -> None:
    transactions = ShardTransactions(40)
    end(transactions, PETRA, 41)
    ((key, value), _) = transactions.pending(PAUL, [(K, b"v"), (L, b"w")])
    assert decode_pending_key(key) == (7, 40, K)
    assert value is not None
    assert decode_pending_value(value) == (0, 42, b"v")
    assert transactions.is_open(*PAUL)
    assert not transactions.is_open(7, 1)
    assert (transactions.last_marker(8), transactions.last_marker(7)) == (41, NO_MARKER)


def test_what_was_committed_is_kept_and_then_removed_with_that() -> None:
    transactions = ShardTransactions()
    transactions.pending(PAUL, [(K, b"v"), (L, b"w")])
    assert (transactions.to_keep(), removed(transactions)) == ([], [])
    end(transactions, PAUL, 5)
    assert transactions.to_keep() == [K, L]
    assert removed(transactions, L) == [(7, 1, L)]
    assert removed(transactions) == [(7, 0, K)]
    assert not transactions


def test_what_was_aborted_is_only_removed() -> None:
    transactions = ShardTransactions()
    transactions.pending(PAUL, [(K, b"v")])
    end(transactions, PAUL, 5, committed=False)
    assert transactions.to_keep() == []
    assert removed(transactions) == [(7, 0, K)]
    assert not transactions


def test_nothing_is_told_of_an_offset_before_all_transactions_about_it_have_ended() -> None:
    """A plain record would count for later than the undecided pending offset of another transaction."""
    transactions = ShardTransactions()
    transactions.pending(PAUL, [(K, b"v"), (L, b"w")])
    transactions.pending(PETRA, [(K, b"x")])
    end(transactions, PAUL, 5)
    assert transactions.to_keep() == [L]
    assert removed(transactions, K) == []
    assert removed(transactions) == [(7, 1, L)]
    end(transactions, PETRA, 6, committed=False)
    assert transactions.to_keep() == [K]
    assert sorted(removed(transactions)) == [(7, 0, K), (8, 2, K)]


def test_each_record_has_a_key_of_its_own() -> None:
    """Else compaction might remove one that counts in favour of one that came too late, or was aborted."""
    transactions = ShardTransactions()
    transactions.pending(PETRA, [(K, b"x")])
    transactions.pending(PAUL, [(K, b"v")])
    end(transactions, PAUL, 5)
    transactions.pending(PAUL, [(K, b"w")])
    end(transactions, PAUL, 6, committed=False)
    end(transactions, PETRA, 7, committed=False)
    assert transactions.to_keep() == [K]
    assert sorted(removed(transactions)) == [(7, 1, K), (7, 2, K), (8, 0, K)]


def test_a_producer_that_wrote_nothing_here_leaves_nothing() -> None:
    transactions = ShardTransactions()
    end(transactions, PAUL, 5)
    assert not transactions
    assert transactions.since == 6
