"""Rules of their own for requests about transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kshim.access.asker import ERRORS, Asker
from kshim.access.rules import Need, Perform, each, refused, whole
from kshim.api.add_partitions_to_txn import FIRST_VERSION_FOR_BROKERS
from kshim.api.init_producer_id import NONE
from kshim.cluster import INTERNAL_TOPICS
from kshim.cluster.acl import AclOperation, AclResource
from kshim.coordination.transactions.requests import partition_results
from kshim.requests.later import then
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from schemas.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

CLUSTER, TOPIC = AclResource.CLUSTER, AclResource.TOPIC
TRANSACTIONAL_ID = AclResource.TRANSACTIONAL_ID

_of_broker = whole(Need(AclOperation.CLUSTER_ACTION))


def init_producer_id(asker: Asker, request: InitProducerIdRequest, perform: Perform) -> Any:
    """Without a transactional id: for those who may write idempotently, or to any topic (KIP-679)."""
    if request.transactional_id is not None:
        may = asker.may(AclOperation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    else:
        may = asker.may_any(AclOperation.WRITE, TOPIC) or asker.may(AclOperation.IDEMPOTENT_WRITE, CLUSTER)
    if may:
        return perform(request)
    error = ERRORS[CLUSTER if request.transactional_id is None else TRANSACTIONAL_ID]
    return InitProducerIdResponse(error_code=error, producer_id=NONE, producer_epoch=NONE)


def add_partitions_to_txn(asker: Asker, request: AddPartitionsToTxnRequest, perform: Perform) -> Any:
    """A client needs its transactional id and all of the topics; from v4 on only brokers ask."""
    if asker.version >= FIRST_VERSION_FOR_BROKERS:
        return _of_broker(asker, request, perform)
    transactional_id = request.v3_and_below_transactional_id
    if not asker.may(AclOperation.WRITE, TRANSACTIONAL_ID, transactional_id):
        return refused(asker, request, perform, ERRORS[TRANSACTIONAL_ID])
    names = list({topic.name for topic in request.v3_and_below_topics} - set(INTERNAL_TOPICS))

    def answer(allowed: set[str]) -> Any:
        known = asker.broker.cluster.topics
        errors: dict[tuple[str, int], ErrorCode] = {}
        for topic in request.v3_and_below_topics:
            for index in topic.partitions:
                if topic.name not in allowed:
                    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                elif topic.name not in known or known[topic.name].partition(index) is None:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    error = ErrorCode.OPERATION_NOT_ATTEMPTED
                errors[topic.name, index] = error
        if ErrorCode.TOPIC_AUTHORIZATION_FAILED not in errors.values():
            return perform(request)
        result = partition_results(transactional_id, errors.items())
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)

    return then(asker.may_each(AclOperation.WRITE, TOPIC, names), answer)


def write_txn_markers(asker: Asker, request: Any, perform: Perform) -> Any:
    """For administrators, too, who end what hangs (KIP-664)."""
    if asker.may(AclOperation.ALTER, CLUSTER, quietly=True):
        return perform(request)
    return _of_broker(asker, request, perform)


_described = each("transactional_ids", AclOperation.DESCRIBE, TRANSACTIONAL_ID)


def describe_transactions(asker: Asker, request: DescribeTransactionsRequest, perform: Perform) -> Any:
    """Each by itself, with those of its topics that the caller may describe."""

    def visible(response: DescribeTransactionsResponse) -> Any:
        states = response.transaction_states
        names = list({topic.topic for state in states for topic in state.topics})

        def told(allowed: set[str]) -> DescribeTransactionsResponse:
            if len(allowed) == len(names):
                return response
            return replace(response, transaction_states=tuple(_without(state, allowed) for state in states))

        return then(asker.may_each(AclOperation.DESCRIBE, TOPIC, names, quietly=True), told)

    return then(_described(asker, request, perform), visible)


def _without(state: TransactionState, allowed: set[str]) -> TransactionState:
    return replace(state, topics=tuple(topic for topic in state.topics if topic.topic in allowed))
