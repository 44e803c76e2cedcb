"""EndTxn (26): commit or abort a transaction (KIP-98).

v5: the answer has the producer id and epoch of the next transaction (KIP-890).
"""

from __future__ import annotations

from dataclasses import replace

from kshim.answering.views import CoordinatorView
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_WITH_FENCED = 2


async def end_txn(broker: CoordinatorView, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """Answer when the outcome is durable. Below v2 the error INVALID_PRODUCER_EPOCH stands for
    PRODUCER_FENCED (KIP-588).
    """
    response = await broker.transactions.submit(context, request)
    fenced = response.error_code == ErrorCode.PRODUCER_FENCED
    if fenced and context.api_version < FIRST_VERSION_WITH_FENCED:
        return replace(response, error_code=ErrorCode.INVALID_PRODUCER_EPOCH)
    return response
