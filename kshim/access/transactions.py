"""Special rules for requests about transactions."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from kshim.access.asker import ERRORS, Asker
from kshim.access.rules import Need, Perform, Q, R, each, refused, whole
from kshim.api.add_partitions_to_txn import FIRST_VERSION_FOR_BROKERS
from kshim.api.init_producer_id import NONE
from kshim.cluster import INTERNAL_TOPICS, Topic
from kshim.cluster.acl import AclOperation, AclResource
from kshim.coordination.transactions.requests import by_topic
from kshim.turns.promise import settled
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from schemas.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

CLUSTER, TOPIC = AclResource.CLUSTER, AclResource.TOPIC
TRANSACTIONAL_ID = AclResource.TRANSACTIONAL_ID

_of_broker = whole(Need(AclOperation.CLUSTER_ACTION))


def init_producer_id(
    asker: Asker,
    request: InitProducerIdRequest,
    perform: Perform[InitProducerIdRequest, InitProducerIdResponse],
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    """Check the right to write with the transactional id.

    Without a transactional id, the caller must be allowed to write idempotently, or to any topic (KIP-679).
    """
    if request.transactional_id is not None:
        may = asker.may(AclOperation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    else:
        may = asker.may_any(AclOperation.WRITE, TOPIC) or asker.may(AclOperation.IDEMPOTENT_WRITE, CLUSTER)
    if may:
        return perform(request)
    error = ERRORS[CLUSTER if request.transactional_id is None else TRANSACTIONAL_ID]
    return InitProducerIdResponse(error_code=error, producer_id=NONE, producer_epoch=NONE)


async def add_partitions_to_txn(
    asker: Asker,
    request: AddPartitionsToTxnRequest,
    perform: Perform[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse],
) -> AddPartitionsToTxnResponse:
    """Check the rights to the transactional id and to all topics; internal topics are always refused.

    If one topic is refused, none is added. From v4 on, only brokers may send the request.
    """
    if asker.version >= FIRST_VERSION_FOR_BROKERS:
        return await settled(_of_broker(asker, request, perform))
    transactional_id = request.v3_and_below_transactional_id
    if not asker.may(AclOperation.WRITE, TRANSACTIONAL_ID, transactional_id):
        response: AddPartitionsToTxnResponse = refused(asker, request, ERRORS[TRANSACTIONAL_ID])
        return response
    names = {topic.name for topic in request.v3_and_below_topics}
    allowed = await asker.may_each(AclOperation.WRITE, TOPIC, sorted(names.difference(INTERNAL_TOPICS)))
    if allowed.issuperset(names):
        return await settled(perform(request))
    made = partial(_not_added, allowed, dict(asker.broker.cluster.topics))
    topics = by_topic(
        (topic.name, index) for topic in request.v3_and_below_topics for index in topic.partitions
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=Mapped(made, tuple(topics.items())))


def _not_added(
    allowed: Collection[str], known: Mapping[str, Topic], topic: tuple[str, Iterable[int]]
) -> AddPartitionsToTxnTopicResult:
    """Say why the partitions of a topic are not added: the topic is refused, the partition does not exist, or
    another topic is refused.
    """
    name, indexes = topic

    def error(index: int) -> ErrorCode:
        if name not in allowed:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if name not in known or known[name].partition(index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return AddPartitionsToTxnTopicResult(
        name=name,
        results_by_partition=tuple(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error(index))
            for index in dict.fromkeys(indexes)
        ),
    )


def write_txn_markers(asker: Asker, request: Q, perform: Perform[Q, R]) -> R | Awaitable[R]:
    """Allow brokers, and administrators, who end hanging transactions (KIP-664)."""
    if asker.may(AclOperation.ALTER, CLUSTER, quietly=True):
        return perform(request)
    return _of_broker(asker, request, perform)


_described = each("transactional_ids", AclOperation.DESCRIBE, TRANSACTIONAL_ID)


async def describe_transactions(
    asker: Asker,
    request: DescribeTransactionsRequest,
    perform: Perform[DescribeTransactionsRequest, DescribeTransactionsResponse],
) -> DescribeTransactionsResponse:
    """Describe the transactions that the caller may describe, with the topics that it may describe."""
    response = await settled(_described(asker, request, perform))
    states = response.transaction_states
    names = list({topic.topic for state in states for topic in state.topics})
    allowed = await asker.may_each(AclOperation.DESCRIBE, TOPIC, names, quietly=True)
    if len(allowed) == len(names):
        return response
    return replace(response, transaction_states=tuple(_without(state, allowed) for state in states))


def _without(state: TransactionState, allowed: set[str]) -> TransactionState:
    return replace(state, topics=tuple(topic for topic in state.topics if topic.topic in allowed))
