"""A transaction is decoded from its record as it was, without its previous epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.coordination.transactions.decision import TransactionRecord
from kshim.coordination.transactions.records import decode_record, encode_record
from kshim.coordination.transactions.states import State
from kshim.coordination.transactions.transaction import Transaction
from schemas.internal_topics.transaction_log import TransactionLogValue, encode_key, encode_value
from schemas.message import MalformedMessage
from tests.coordination.transactions.history import ID, NOW_MS, OTHER, T0, T1

PRODUCER_IDS = st.integers(0, 2**63 - 1)
TRANSACTIONS = st.builds(
    Transaction,
    producer_id=PRODUCER_IDS,
    previous_producer_id=PRODUCER_IDS,
    next_producer_id=PRODUCER_IDS | st.just(-1),
    producer_epoch=st.integers(0, 2**15 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    state=st.sampled_from([state for state in State if state not in (State.DEAD, State.PREPARE_EPOCH_FENCE)]),
    partitions=st.frozensets(st.sampled_from([T0, T1, OTHER])),
    start_ms=st.integers(-1, 2**63 - 1),
    last_update_ms=st.integers(0, 2**63 - 1),
    transaction_version=st.sampled_from([0, 2]),
)


@given(TRANSACTIONS)
def test_what_is_written_is_read(transaction: Transaction) -> None:
    if transaction.state is State.EMPTY:
        transaction = replace(transaction, partitions=frozenset())
    assert decode_record(*encode_record(TransactionRecord(ID, transaction))) == TransactionRecord(
        ID, transaction
    )


def test_the_epoch_before_is_forgotten() -> None:
    transaction = Transaction(
        producer_id=1,
        previous_producer_id=1,
        producer_epoch=3,
        last_producer_epoch=2,
        timeout_ms=1,
        last_update_ms=NOW_MS,
    )
    forgotten = replace(transaction, last_producer_epoch=-1)
    assert decode_record(*encode_record(TransactionRecord(ID, transaction))) == TransactionRecord(
        ID, forgotten
    )


def test_a_tombstone() -> None:
    assert encode_record(TransactionRecord(ID, None)) == (encode_key(ID), None)
    assert decode_record(encode_key(ID), None) == TransactionRecord(ID, None)


def test_a_record_of_another_kind() -> None:
    assert decode_record(b"\0\5xyz", b"whatever") is None


def test_a_state_that_there_is_not() -> None:
    with pytest.raises(MalformedMessage, match="9 is no state"):
        decode_record(encode_key(ID), encode_value(TransactionLogValue(transaction_status=9)))
