"""The transaction coordinator as one of several brokers: it answers for the ids whose partition it leads.

All brokers share the coordinator's state, so that one takes over from another at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred

from kshim.api.later import then
from kshim.cluster import TRANSACTION_STATE_TOPIC, Cluster
from kshim.context import RequestContext, Transactions
from kshim.coordinator.coordinator import partition_for
from kshim.transactions.requests import AddPartitions, DescribeTransaction, refuse
from schemas.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from schemas.end_txn import EndTxnRequest
from schemas.error_code import ErrorCode
from schemas.init_producer_id import InitProducerIdRequest
from schemas.list_transactions import ListTransactionsRequest, ListTransactionsResponse


class NodeTransactions:
    """Implements `Transactions` for the broker `node_id`.

    An AddPartitionsToTxnRequest is passed on whoever coordinates: it is what brokers ask each other.
    """

    def __init__(self, transactions: Transactions, cluster: Cluster, node_id: int) -> None:
        self._transactions = transactions
        self._cluster = cluster
        self._node_id = node_id

    def submit(self, context: RequestContext, request: Any) -> Any | Deferred[Any]:
        match request:
            case InitProducerIdRequest() | AddPartitions() | EndTxnRequest():
                if request.transactional_id is not None and not self._leads(request.transactional_id):
                    return refuse(request, ErrorCode.NOT_COORDINATOR)
            case DescribeTransactionsRequest():
                return self._describe(context, request)
            case ListTransactionsRequest():
                return then(self._transactions.submit(context, request), self._listed)
        return self._transactions.submit(context, request)

    def _leads(self, transactional_id: str) -> bool:
        topic = self._cluster.topics.get(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return True  # nobody does, and the coordinator says so
        shard = partition_for(transactional_id, len(topic.partitions))
        return topic.partitions[shard].leader == self._node_id

    def _describe(self, context: RequestContext, request: DescribeTransactionsRequest) -> Any | Deferred[Any]:
        led = {key: self._leads(key) for key in request.transactional_ids}
        ours = tuple(key for key in request.transactional_ids if led[key])

        def described(response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
            known = iter(response.transaction_states)
            states = (
                next(known) if led[key] else refuse(DescribeTransaction(key), ErrorCode.NOT_COORDINATOR)
                for key in request.transactional_ids
            )
            return replace(response, transaction_states=tuple(states))

        return then(self._transactions.submit(context, replace(request, transactional_ids=ours)), described)

    def _listed(self, response: ListTransactionsResponse) -> ListTransactionsResponse:
        ours = (state for state in response.transaction_states if self._leads(state.transactional_id))
        return replace(response, transaction_states=tuple(ours))
