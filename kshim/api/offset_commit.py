"""OffsetCommit (8): commit offsets. The coordinator commits existing partitions; this module refuses the
others.

From v10 on, topics are named by id (KIP-848's follow-up). If no existing partition is left, the coordinator
is not asked. So a commit without partitions always succeeds, for any group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kshim.answering.divide import PARTITIONS_AT_ONCE, NamedPartition, answer_in_pieces, merged, sorted_out
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.turns.promise import Answer, run, settled
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_TOPIC_IDS = 10


def offset_commit(
    broker: GroupsView, context: RequestContext, request: OffsetCommitRequest
) -> Answer[OffsetCommitResponse]:
    """Answer for each partition: first the refused ones, then those that the coordinator answers."""
    if context.api_version < FIRST_VERSION_WITH_TOPIC_IDS and _is_plain(broker, request):
        return broker.groups.commit(context, request)
    return run(answer_in_pieces(broker, context, request, _answer))


def _is_plain(broker: GroupsView, request: OffsetCommitRequest) -> bool:
    """True if the coordinator can take the request unchanged: few partitions, named, and all exist."""
    left, topics = PARTITIONS_AT_ONCE, broker.cluster.topics
    for named in request.topics:
        topic = topics.get(named.name)
        left -= len(named.partitions) + 1
        if topic is None or not named.partitions or left < 0:
            return False
        count = len(topic.partitions)
        for partition in named.partitions:
            if not 0 <= partition.partition_index < count:
                return False
    return left < PARTITIONS_AT_ONCE


async def _answer(
    broker: GroupsView, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    known, refused = sorted_out(broker.cluster, request.topics, by_id, _refused)
    if not known:
        return OffsetCommitResponse(topics=merged(refused))
    if known != request.topics:
        request = replace(request, topics=known)
    response = await settled(broker.groups.submit(context, request))
    if not refused:
        return response
    return OffsetCommitResponse(topics=merged((*refused, *response.topics)))


def _refused(
    named: OffsetCommitRequestTopic, partitions: Iterable[NamedPartition], error: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=named.name,
        topic_id=named.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in partitions
        ),
    )
