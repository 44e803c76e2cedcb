"""DescribeTransactions (65): what the coordinator knows about transactional ids (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later, then
from kshim.requests.slices import in_pieces
from schemas.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

IDS_AT_ONCE = 200


def describe_transactions(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> Later[DescribeTransactionsResponse]:
    """Forward each id to its shard, which answers once its state is durable."""

    def describe(some: Sequence[str]) -> Later[Iterable[TransactionState]]:
        asked = DescribeTransactionsRequest(transactional_ids=tuple(some))
        return then(broker.transactions.submit(context, asked), lambda answer: answer.transaction_states)

    described = in_pieces(broker, context, request.transactional_ids, describe, IDS_AT_ONCE)
    return then(described, lambda found: DescribeTransactionsResponse(transaction_states=tuple(found)))
