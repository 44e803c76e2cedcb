"""DescribeTransactions (65): what the coordinator knows about transactional ids (KIP-664)."""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later
from schemas.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse


def describe_transactions(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> Later[DescribeTransactionsResponse]:
    """Forward each id to its shard, which answers once its state is durable."""
    return broker.transactions.submit(context, request)
