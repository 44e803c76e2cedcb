"""EndTxn: commit or abort.

Up to v4 the producer keeps its epoch, and any other epoch is refused. From v5 on every transaction ends with
the next epoch, or with a new producer id and epoch 0. The answer carries them, and the client uses them from
then on. So an EndTxn with the previous epoch is a repetition after a lost answer, and gets the same answer
again (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable

from kshim.coordination.transactions.states import END_TXN_V1, END_TXN_V2, ENDING, Action, Asked, State
from kshim.coordination.transactions.transaction import LAST_PRODUCER_EPOCH, NO_PRODUCER_ID, Transaction
from schemas.error_code import ErrorCode
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_WITH_EPOCH = 5


def end_v1(
    transaction: Transaction | None, request: EndTxnRequest, now_ms: int
) -> tuple[Transaction | None, EndTxnResponse]:
    """EndTxn up to v4: the next value of the transaction, or None if nothing changes; and the answer."""
    if transaction is None or transaction.producer_id != request.producer_id:
        return None, EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        return None, EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
    answer = END_TXN_V1[transaction.state][Asked.COMMIT if request.committed else Asked.ABORT]
    if isinstance(answer, ErrorCode):
        return None, EndTxnResponse(error_code=answer)
    if answer is Action.REPEAT:
        return None, EndTxnResponse()
    return transaction.ending(_outcome(request), 0, now_ms), EndTxnResponse()


def end_v2(
    transaction: Transaction | None,
    request: EndTxnRequest,
    new_producer_id: Callable[[], int],
    now_ms: int,
) -> tuple[Transaction | None, EndTxnResponse]:
    """Like `end_v1`, but from v5 on: the answer has the producer id and epoch of the next transaction."""
    if transaction is None:
        return None, EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.state in ENDING:
        return None, EndTxnResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    asked = _asked(transaction, request)
    answer = asked if isinstance(asked, ErrorCode) else END_TXN_V2[transaction.state][asked]
    if isinstance(answer, ErrorCode):
        return None, EndTxnResponse(error_code=answer)
    if answer is Action.REPEAT:
        return None, _response(transaction)
    next_producer_id = new_producer_id() if transaction.is_epoch_exhausted else NO_PRODUCER_ID
    ending = transaction.ending(_outcome(request), 2, now_ms, next_producer_id)
    return ending, _response(ending.completed(now_ms))


def _asked(transaction: Transaction, request: EndTxnRequest) -> Asked | ErrorCode:
    """The kind of EndTxn: for the current transaction, or a repetition for the last one; or the error."""
    is_same_id = transaction.producer_id == request.producer_id
    overflowed = (
        transaction.previous_producer_id == request.producer_id
        and request.producer_epoch >= LAST_PRODUCER_EPOCH
        and transaction.producer_epoch == 0
    )
    if not is_same_id and not overflowed:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if overflowed or transaction.producer_epoch == request.producer_epoch + 1:
        return Asked.COMMIT_AGAIN if request.committed else Asked.ABORT_AGAIN
    if transaction.producer_epoch == request.producer_epoch:
        return Asked.COMMIT if request.committed else Asked.ABORT
    return ErrorCode.PRODUCER_FENCED


def _outcome(request: EndTxnRequest) -> State:
    return State.PREPARE_COMMIT if request.committed else State.PREPARE_ABORT


def _response(transaction: Transaction) -> EndTxnResponse:
    return EndTxnResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)
