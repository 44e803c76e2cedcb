"""AlterPartitionReassignments (45): give partitions other replicas (KIP-455).

v1: a request may forbid changing the number of replicas (KIP-860).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal, leaders
from kshim.cluster.changes import Outcome, TopicPartition
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

PARTITIONS_AT_ONCE = 500


async def alter_partition_reassignments(
    broker: ClusterView, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Reassign each partition independently. It is done before the answer, unless a new replica's broker is
    stopped.

    If the request names no topic, the answer repeats no field of the request, as in Apache Kafka.
    """
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    wanted = [
        ((topic.name, partition.partition_index), partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    ]
    allow = request.allow_replication_factor_change

    async def reassign(some: Sequence[tuple[TopicPartition, Sequence[int] | None]]) -> Outcome:
        return await leaders.reassign(broker.cluster, some, allow_replication_factor_change=allow)

    try:
        outcome = await in_pieces(broker.rounds, context.turn, wanted, reassign, PARTITIONS_AT_ONCE)
    except StorageError:
        return AlterPartitionReassignmentsResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    results = (_result(index, refusal) for (_, index), refusal in outcome)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=allow,
        error_message=None,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name, partitions=tuple(itertools.islice(results, len(topic.partitions)))
            )
            for topic in request.topics
        ),
    )


def _result(index: int, refusal: Refusal | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=index,
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
    )
