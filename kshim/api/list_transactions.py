"""ListTransactions (66): the transactional ids of this broker (KIP-664).

v1 open for longer than duration_filter (KIP-994); v2 whose id matches a regular expression (KIP-1152).
"""

from __future__ import annotations

from typing import Any

from kshim.requests import Broker, RequestContext
from schemas.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def list_transactions(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """The transactions as they are now."""
    answer: Any = broker.transactions.submit(context, request)
    response: ListTransactionsResponse = answer
    return response
