"""DescribeTransactions (65): what the coordinator knows of transactional ids (KIP-664)."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kshim.requests import Broker, RequestContext
from schemas.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse


def describe_transactions(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Deferred[DescribeTransactionsResponse]:
    """Each as it is once all that it has been told is durable."""
    response: DescribeTransactionsResponse | Deferred[DescribeTransactionsResponse]
    response = broker.transactions.submit(context, request)
    return response
