"""OffsetCommit (8): commits for partitions that exist go to the coordinator, the others are refused here.

From v10 on topics are named by id (KIP-848's follow-up). When nothing is left for the coordinator it is not
asked, so a commit of no partitions always succeeds, for any group.
"""

from __future__ import annotations

from dataclasses import replace

from twisted.internet.defer import Deferred

from kshim.api.later import then
from kshim.cluster import Topic
from kshim.context import Broker, RequestContext
from schemas.error_code import ErrorCode
from schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_TOPIC_IDS = 10


def offset_commit(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """Each partition is answered for itself: those refused here first, then the coordinator's."""
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    known: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for named in request.topics:
        topic = broker.cluster.topic_by_id(named.topic_id) if by_id else broker.cluster.topics.get(named.name)
        accepted, rejected = _split(named, topic, by_id)
        if accepted is not None:
            known.append(accepted)
        if rejected is not None:
            refused.append(rejected)
    if not known:
        return OffsetCommitResponse(topics=tuple(refused))
    if not refused and not by_id:
        answer: OffsetCommitResponse | Deferred[OffsetCommitResponse] = broker.groups.submit(context, request)
        return answer
    answer = broker.groups.submit(context, replace(request, topics=tuple(known)))
    return then(answer, lambda response: OffsetCommitResponse(topics=_merged(refused, response.topics)))


def _split(
    named: OffsetCommitRequestTopic, topic: Topic | None, by_id: bool
) -> tuple[OffsetCommitRequestTopic | None, OffsetCommitResponseTopic | None]:
    """What of one topic the coordinator is asked to commit, and what is refused because it does not exist."""
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None, _refused(named, [p.partition_index for p in named.partitions], error)
    missing = [p.partition_index for p in named.partitions if topic.partition(p.partition_index) is None]
    if not missing:
        return (replace(named, name=topic.name) if by_id else named), None
    present = tuple(p for p in named.partitions if topic.partition(p.partition_index) is not None)
    accepted = replace(named, name=topic.name, partitions=present) if present else None
    return accepted, _refused(named, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _refused(
    named: OffsetCommitRequestTopic, indexes: list[int], error: ErrorCode
) -> OffsetCommitResponseTopic:
    partitions = tuple(OffsetCommitResponsePartition(partition_index=i, error_code=error) for i in indexes)
    return OffsetCommitResponseTopic(name=named.name, topic_id=named.topic_id, partitions=partitions)


def _merged(
    refused: list[OffsetCommitResponseTopic], committed: tuple[OffsetCommitResponseTopic, ...]
) -> tuple[OffsetCommitResponseTopic, ...]:
    """One entry a topic: its refused partitions, then its committed ones."""
    merged = {(topic.name, topic.topic_id): topic for topic in refused}
    for topic in committed:
        before = merged.get((topic.name, topic.topic_id))
        partitions = topic.partitions if before is None else before.partitions + topic.partitions
        merged[topic.name, topic.topic_id] = replace(topic, partitions=partitions)
    return tuple(merged.values())
