"""ListTransactions (66): the transactional ids of this broker (KIP-664).

v1: a filter by duration (KIP-994); v2: by a regular expression for the id (KIP-1152).
"""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later
from schemas.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def list_transactions(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> Later[ListTransactionsResponse]:
    """The transactions as they are now."""
    return broker.transactions.submit(context, request)
