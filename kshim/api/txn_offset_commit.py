"""TxnOffsetCommit (28): commit offsets as part of a transaction.

Commits for existing partitions go to the group coordinator, once it is known that the transaction is under
way. This module refuses the others. Up to v4 the client has added the group to its transaction with
AddOffsetsToTxn, and the broker verifies that; from v5 on the broker adds the group (KIP-890). The transaction
coordinator is asked once per transaction. After the transaction's first offset in the group's partition, the
log knows it. From v6 on topics are named by id (KIP-1319).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kshim.answering.divide import NamedPartition, answer_in_pieces, merged, sorted_out
from kshim.answering.views import OffsetsView
from kshim.callers import RequestContext
from kshim.cluster import GROUP_METADATA_TOPIC
from kshim.coordination.groups.refusals import FIRST_TXN_VERSION_THAT_KNOWS_LOADING
from kshim.turns.promise import settled
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_ABORTABLE = 4
FIRST_VERSION_THAT_ADDS = 5
FIRST_VERSION_WITH_TOPIC_IDS = 6

OF_THE_GROUP = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The errors that a producer gets in place of the transaction coordinator's, as from Kafka's group
coordinator.
"""


async def txn_offset_commit(
    broker: OffsetsView, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Answer for each partition: first the refused ones, then those that the coordinator answers."""
    return await answer_in_pieces(broker, context, request, _answer)


async def _answer(
    broker: OffsetsView, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    known, refused = sorted_out(broker.cluster, request.topics, by_id, _refused)
    if not known:
        return TxnOffsetCommitResponse(topics=merged(refused))
    response = await _commit(broker, context, replace(request, topics=known))
    if not refused:
        return response
    return TxnOffsetCommitResponse(topics=merged((*refused, *response.topics)))


async def _commit(
    broker: OffsetsView, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Commit once it is known that the transaction has the group's partition of __consumer_offsets."""
    groups = broker.groups
    shard = groups.shard_for(request.group_id)
    transaction = request.producer_id, request.producer_epoch
    if groups.refusal(context, request) is not ErrorCode.NONE or broker.has_offsets(shard, *transaction):
        return await settled(groups.submit(context, request))
    joined = AddPartitionsToTxnTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        verify_only=context.api_version < FIRST_VERSION_THAT_ADDS,
        topics=(AddPartitionsToTxnTopic(name=GROUP_METADATA_TOPIC, partitions=(shard,)),),
    )
    verified = await broker.transactions.submit(context, AddPartitionsToTxnRequest(transactions=(joined,)))
    error = _error(verified, context.api_version)
    if error is not ErrorCode.NONE:
        return _all_refused(request, error)
    return await settled(groups.submit(context, request))


def _error(response: AddPartitionsToTxnResponse, api_version: int) -> ErrorCode:
    """The transaction coordinator's error, in the form that producers of that version expect."""
    results = [
        partition.partition_error_code
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for partition in topic.results_by_partition
    ]
    error = ErrorCode(response.error_code or next(filter(None, results), ErrorCode.NONE))
    if error is ErrorCode.TRANSACTION_ABORTABLE and api_version < FIRST_VERSION_WITH_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    error = OF_THE_GROUP.get(error, error)
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and api_version < FIRST_TXN_VERSION_THAT_KNOWS_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def _all_refused(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=tuple(_refused(topic, topic.partitions, error) for topic in request.topics)
    )


def _refused(
    named: TxnOffsetCommitRequestTopic,
    partitions: Iterable[NamedPartition],
    error: ErrorCode,
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=named.name,
        topic_id=named.topic_id,
        partitions=tuple(
            TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in partitions
        ),
    )
