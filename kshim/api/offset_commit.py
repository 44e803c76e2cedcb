"""OffsetCommit (8): commit offsets. The coordinator commits existing partitions; this module refuses the
others.

From v10 on, topics are named by id (KIP-848's follow-up). If no existing partition is left, the coordinator
is not asked. So a commit without partitions always succeeds, for any group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kshim.answering.divide import PARTITIONS_AT_ONCE, answer_in_pieces, divided, merged
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.cluster import Topic
from kshim.turns.promise import Answer, run, settled
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
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
    known: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for named in request.topics:
        topic = broker.cluster.topic_by_id(named.topic_id) if by_id else broker.cluster.topics.get(named.name)
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refused(named, named.partitions, unknown))
        else:
            _sort_out(replace(named, name=topic.name) if by_id else named, topic, known, refused)
    if not known:
        return OffsetCommitResponse(topics=merged(refused))
    topics = tuple(known)
    if topics != request.topics:
        request = replace(request, topics=topics)
    response = await settled(broker.groups.submit(context, request))
    if not refused:
        return response
    return OffsetCommitResponse(topics=merged((*refused, *response.topics)))


def _sort_out(
    named: OffsetCommitRequestTopic,
    topic: Topic,
    known: list[OffsetCommitRequestTopic],
    refused: list[OffsetCommitResponseTopic],
) -> None:
    """Divide the partitions of one topic into those that exist and those that do not."""
    existing, missing = divided(named.partitions, topic)
    if missing:
        refused.append(_refused(named, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        named = replace(named, partitions=existing)
    if named.partitions:
        known.append(named)


def _refused(
    named: OffsetCommitRequestTopic, partitions: Iterable[OffsetCommitRequestPartition], error: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=named.name,
        topic_id=named.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in partitions
        ),
    )
