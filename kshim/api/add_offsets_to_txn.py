"""AddOffsetsToTxn (25): allow a transaction to commit offsets of a group (KIP-98).

The group's partition of `__consumer_offsets` is added to the transaction.
"""

from __future__ import annotations

from kshim.answering.views import CoordinatorView
from kshim.callers import RequestContext
from kshim.cluster import GROUP_METADATA_TOPIC
from kshim.coordination.transactions.requests import AddPartitions
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FIRST_VERSION_WITH_FENCED = 2


async def add_offsets_to_txn(
    broker: CoordinatorView, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Add the group's partition; the group need not exist. Below v2 the error INVALID_PRODUCER_EPOCH stands
    for PRODUCER_FENCED (KIP-588).
    """
    asked = AddPartitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        ((GROUP_METADATA_TOPIC, broker.groups.shard_for(request.group_id)),),
    )
    result = await broker.transactions.submit(context, asked)
    error = result.topic_results[0].results_by_partition[0].partition_error_code
    if error == ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_VERSION_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)
