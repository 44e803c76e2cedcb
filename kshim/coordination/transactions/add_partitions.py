"""Adds partitions to a transaction, or verifies that they are in it. The first partition begins a
transaction.

An older client adds partitions with AddPartitionsToTxn and AddOffsetsToTxn, and the broker that gets its
records and offsets only verifies that they were added. For a newer client that broker adds them (KIP-890).
"""

from __future__ import annotations

from kshim.coordination.transactions.requests import AddPartitions
from kshim.coordination.transactions.states import ENDING, State
from kshim.coordination.transactions.transaction import TopicPartition, Transaction
from schemas.error_code import ErrorCode


def add(
    transaction: Transaction | None, request: AddPartitions, now_ms: int
) -> tuple[Transaction | None, ErrorCode]:
    """The next value of the transaction, or None if nothing changes; and the error of all partitions."""
    error = _fault(transaction, request)
    if transaction is None or error is not ErrorCode.NONE:
        return None, error
    added = frozenset(request.partitions)
    if transaction.state is State.ONGOING and added <= transaction.partitions:
        return None, ErrorCode.NONE
    return transaction.with_partitions(added, request.transaction_version, now_ms), ErrorCode.NONE


def verify(transaction: Transaction | None, request: AddPartitions) -> dict[TopicPartition, ErrorCode]:
    """The error of each partition; TRANSACTION_ABORTABLE if it is not in the transaction."""
    error = _fault(transaction, request)
    if transaction is None or error is not ErrorCode.NONE:
        return dict.fromkeys(request.partitions, error)
    return {
        partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in request.partitions
    }


def _fault(transaction: Transaction | None, request: AddPartitions) -> ErrorCode:
    if transaction is None or transaction.producer_id != request.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != request.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.state in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE
