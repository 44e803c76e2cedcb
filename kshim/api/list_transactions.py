"""ListTransactions (66): the transactional ids of this broker (KIP-664).

v1: a filter by duration (KIP-994); v2: by a regular expression for the id (KIP-1152).
"""

from __future__ import annotations

from dataclasses import replace

from kshim.coordination.transactions.patterns import InvalidPattern, matcher
from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later, then
from schemas.error_code import ErrorCode
from schemas.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def list_transactions(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> Later[ListTransactionsResponse]:
    """The transactions as they are now. A pattern is matched aside: each id may take it a second."""
    pattern = request.transactional_id_pattern

    def filtered(listed: ListTransactionsResponse) -> Later[ListTransactionsResponse]:
        if not pattern or listed.error_code:
            return listed
        context.turn.is_alone = True
        return broker.aside.run(lambda: _matching(pattern, listed))

    return then(broker.transactions.submit(context, request), filtered)


def _matching(pattern: str, listed: ListTransactionsResponse) -> ListTransactionsResponse:
    try:
        matches = matcher(pattern)
    except InvalidPattern:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    found = (state for state in listed.transaction_states if matches(state.transactional_id))
    return replace(listed, transaction_states=tuple(found))
