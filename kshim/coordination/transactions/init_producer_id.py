"""InitProducerId with a transactional id: a producer begins, and the id's previous producer is fenced.

A producer that names its producer id and epoch goes on where it was (KIP-360). It gets the next epoch, the
same one however often it asks, or PRODUCER_FENCED if another producer has begun in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable

from kshim.coordination.transactions.states import ENDING, State
from kshim.coordination.transactions.transaction import (
    LAST_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdRequest


def begin(
    transaction: Transaction, request: InitProducerIdRequest, new_producer_id: Callable[[], int], now_ms: int
) -> Transaction | ErrorCode:
    """The next value of the transaction, or the error.

    If its state is Empty, the producer gets its producer id and epoch. If it is PrepareAbort, the previous
    producer's transaction was still open: it is aborted first, and the new producer is answered
    CONCURRENT_TRANSACTIONS, so that it asks again.
    """
    going_on = request.producer_id != NO_PRODUCER_ID
    if transaction.state in ENDING:
        # Kafka checks for a pending change of state first, and while a transaction ends there always is one.
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if going_on and not _may_go_on(transaction, request):
        return ErrorCode.PRODUCER_FENCED
    if transaction.state is State.ONGOING:
        return transaction.fenced(now_ms)
    timeout_ms, epoch = request.transaction_timeout_ms, transaction.producer_epoch
    if transaction.is_epoch_exhausted and (not going_on or request.producer_epoch == epoch):
        last_epoch = epoch if going_on else NO_PRODUCER_EPOCH
        return transaction.with_producer_id(new_producer_id(), timeout_ms, last_epoch, now_ms)
    if transaction.is_epoch_exhausted:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if not going_on:
        return transaction.with_next_epoch(timeout_ms, NO_PRODUCER_EPOCH, now_ms)
    if epoch in (NO_PRODUCER_EPOCH, request.producer_epoch):
        return transaction.with_next_epoch(timeout_ms, epoch, now_ms)
    if request.producer_epoch == transaction.last_producer_epoch:
        return transaction.with_same_epoch(timeout_ms, now_ms)
    return ErrorCode.PRODUCER_FENCED


def _may_go_on(transaction: Transaction, request: InitProducerIdRequest) -> bool:
    """True if a request names the present producer id, or the previous one if that ran out of epochs. A
    transaction without an epoch accepts any.
    """
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or request.producer_id == transaction.producer_id
        or (
            request.producer_id == transaction.previous_producer_id
            and request.producer_epoch >= LAST_PRODUCER_EPOCH
        )
    )
