"""AddPartitionsToTxn (24): allow a transaction to write to partitions (KIP-98).

Up to v3 a client adds partitions to its own transaction. Later versions are for brokers: one request names
many transactions, and for each either adds partitions (KIP-890) or only verifies that they were added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kshim.answering.views import CoordinatorView
from kshim.callers import RequestContext
from kshim.cluster import INTERNAL_TOPICS
from kshim.coordination.transactions.requests import AddPartitions, partition_results
from kshim.coordination.transactions.transaction import TopicPartition
from kshim.turns.promise import together
from kshim.turns.slices import in_pieces, in_slices
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

FIRST_VERSION_WITH_FENCED = 2
FIRST_VERSION_FOR_BROKERS = 4
TRANSACTIONS_AT_ONCE = 100
PARTITION_US = 1


async def add_partitions_to_txn(
    broker: CoordinatorView, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Add all partitions of a transaction. If one of them does not exist, none is added
    (OPERATION_NOT_ATTEMPTED).
    """
    if context.api_version >= FIRST_VERSION_FOR_BROKERS:

        async def add(
            some: Sequence[AddPartitionsToTxnTransaction],
        ) -> Iterable[AddPartitionsToTxnResult]:
            return await together(_add(broker, context, _asked(each)) for each in some)

        added = await in_pieces(broker.rounds, context.turn, request.transactions, add, TRANSACTIONS_AT_ONCE)
        return AddPartitionsToTxnResponse(results_by_transaction=tuple(added))
    asked = AddPartitions(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        _partitions(request.v3_and_below_topics),
    )
    result = await _add(broker, context, asked)
    if context.api_version < FIRST_VERSION_WITH_FENCED:
        return _of_old_client(result)
    return _of_client(result)


def _asked(each: AddPartitionsToTxnTransaction) -> AddPartitions:
    return AddPartitions(
        each.transactional_id,
        each.producer_id,
        each.producer_epoch,
        _partitions(each.topics),
        each.verify_only,
        transaction_version=2,
    )


async def _add(
    broker: CoordinatorView, context: RequestContext, asked: AddPartitions
) -> AddPartitionsToTxnResult:
    topics = broker.cluster.topics
    is_client_s = context.api_version < FIRST_VERSION_FOR_BROKERS

    def error(partition: TopicPartition) -> ErrorCode:
        name, index = partition
        if is_client_s and name in INTERNAL_TOPICS:  # so Kafka says, with or without an authorizer
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if name not in topics or topics[name].partition(index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    errors = await in_slices(broker.rounds, context.turn, asked.partitions, error, lambda _: PARTITION_US)
    if set(errors) <= {ErrorCode.OPERATION_NOT_ATTEMPTED}:
        return await broker.transactions.submit(context, asked)
    by_partition = dict(zip(asked.partitions, errors, strict=True))
    return partition_results(asked.transactional_id, by_partition.items())


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> tuple[TopicPartition, ...]:
    return tuple((topic.name, index) for topic in topics for index in topic.partitions)


def _of_client(result: AddPartitionsToTxnResult) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


def _of_old_client(result: AddPartitionsToTxnResult) -> AddPartitionsToTxnResponse:
    """The answer up to v3. Below v2 the error INVALID_PRODUCER_EPOCH stands for PRODUCER_FENCED (KIP-588)."""
    errors = [
        ((topic.name, each.partition_index), ErrorCode(each.partition_error_code))
        for topic in result.topic_results
        for each in topic.results_by_partition
    ]
    known = (
        (partition, ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error)
        for partition, error in errors
    )
    return _of_client(partition_results(result.transactional_id, known))
